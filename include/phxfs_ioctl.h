/*
 * phxfs_ioctl.h - the requests that the phxfs character device understands.
 *
 * Programs that use phoenix.h do not need this header: the library issues
 * these requests itself. It serves tools that talk to /dev/phxfs_dev0..7
 * directly. Source of every value: the phxfs kernel module (its MAP and UNMAP
 * requests, checked on kernel 6.1); docs/abi.md tells what the module does.
 *
 * A registration is made by
 *     mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
 *     ioctl(fd, PHXFS_IOC_MAP, &param)
 * and released by PHXFS_IOC_UNMAP with the same param, then munmap. UNMAP must
 * come first, exactly once per successful MAP, in the process that issued the
 * MAP, and only while the device memory is still allocated: anything else
 * leaks the pin or harms the kernel.
 */
#ifndef PHXFS_IOCTL_H
#define PHXFS_IOCTL_H

#if !defined(__linux__) || !defined(__LP64__) || \
    !(defined(__x86_64__) || defined(__aarch64__)) || \
    !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libphoenix supports only Linux LP64 little-endian on amd64 and arm64."
#endif

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Argument of both requests. Fields that a request does not use are zero. */
struct phxfs_map_param {
	uint64_t dev_id;     /* index of the device, 0..7 */
	uint64_t c_vaddr;    /* address that mmap returned, the start of the mapping */
	uint64_t c_size;     /* bytes of the whole mapping, a multiple of 64 KiB */
	uint64_t n_vaddr;    /* device address to pin, a multiple of 64 KiB */
	uint64_t n_size;     /* bytes of device memory, equal to c_size */
	uint64_t end_addr;   /* not used by MAP and UNMAP: 0 */
	uint32_t sbuf_block; /* not used by MAP and UNMAP: 0 */
	uint32_t reserved;   /* padding: 0 */
};

/*
 * PHXFS_IOC_MAP pins the device memory and fills the mapping's pages with it.
 * 0, or -1 with errno EINVAL (size, alignment), EFAULT (address, parameter),
 * EBUSY, ENOMEM; after a failure nothing is pinned.
 */
#define PHXFS_IOC_MAP _IOW(0x88, 1, struct phxfs_map_param)

/*
 * PHXFS_IOC_UNMAP releases the pin. 0, or -1 with errno EFAULT (parameter).
 * The mapping's pages stay accessible until munmap.
 */
#define PHXFS_IOC_UNMAP _IOW(0x88, 2, struct phxfs_map_param)

/* Proof of the layout: a false condition makes an array of negative size. */
#define PHXFS_PROVE(name, cond) typedef char phxfs_proof_##name[(cond) ? 1 : -1]
PHXFS_PROVE(map_param_size, sizeof(struct phxfs_map_param) == 56);
PHXFS_PROVE(map_dev_id, offsetof(struct phxfs_map_param, dev_id) == 0);
PHXFS_PROVE(map_c_vaddr, offsetof(struct phxfs_map_param, c_vaddr) == 8);
PHXFS_PROVE(map_c_size, offsetof(struct phxfs_map_param, c_size) == 16);
PHXFS_PROVE(map_n_vaddr, offsetof(struct phxfs_map_param, n_vaddr) == 24);
PHXFS_PROVE(map_n_size, offsetof(struct phxfs_map_param, n_size) == 32);
PHXFS_PROVE(map_end_addr, offsetof(struct phxfs_map_param, end_addr) == 40);
PHXFS_PROVE(map_sbuf_block, offsetof(struct phxfs_map_param, sbuf_block) == 48);
PHXFS_PROVE(ioc_map, PHXFS_IOC_MAP == 0x40388801);
PHXFS_PROVE(ioc_unmap, PHXFS_IOC_UNMAP == 0x40388802);
#undef PHXFS_PROVE

#endif /* PHXFS_IOCTL_H */
