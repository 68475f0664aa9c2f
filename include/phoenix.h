/*
 * phoenix.h - the public interface of libphoenix: file I/O straight into and
 * out of device memory through the phxfs kernel module.
 *
 * Link with -lphoenix. Compiles as C99 and later and as C++11 and later.
 * docs/abi.md is the same contract seen from the user's side, docs/errors.md
 * its failures in one table, docs/lifetimes.md who owns what.
 *
 * RULES FOR EVERY CALL
 * Devices     Numbered 0..7, the nodes /dev/phxfs_dev0..7 that the kernel
 *             module makes (it makes no more). With PHXFS_VENDOR=HOST all eight
 *             exist without a node and "device memory" is ordinary memory of
 *             this process.
 * Alignment   A registration's address and length are multiples of
 *             phxfs_get_page_size(): 65536 (64 KiB) for NVIDIA and host, the
 *             size of the pages in which NVIDIA's driver pins memory. I/O inside
 *             a registration needs no alignment beyond what the file needs
 *             (O_DIRECT).
 * Transfers   One request may be of any length; it reaches the kernel in pieces
 *             of at most 1 GiB (the kernel moves less than 2 GiB per call).
 * Errors      Every failing call returns the value given below and sets errno.
 *             Calls that succeed leave errno alone, and so does a batch or
 *             wait that returns a count > 0. EIO from any call: a defect of the
 *             library was contained; nothing is left in flight.
 * Start       Loading the library runs nothing. The first call that needs it
 *             starts the runtime, and the PHXFS_* environment variables are
 *             read then. If the runtime cannot start, calls return -ENOMEM (no
 *             address space) or -EAGAIN (no threads), both retryable, and
 *             pointer calls NULL with that errno.
 * Threads     Every function may be called from any thread at any time.
 * Signals     No function is async-signal-safe, but for phxfs_read and
 *             phxfs_write on a CPU buffer. No signal ends a call early:
 *             interrupted transfers go on.
 * fork        A child works like any process, whether the parent had used the
 *             library or not; its first call starts a runtime of its own and
 *             reads the environment again. Devices that the parent has open
 *             count as open there; registrations of the parent are borrowed:
 *             I/O works, phxfs_deregmem and phxfs_close drop them without
 *             touching the parent's. Batch handles of the parent: -EINVAL.
 *             Children made by _Fork or a raw clone, and every forked child
 *             where the runtime cannot be reset (docs/fork.md), get -ENOSYS
 *             from each call that needs the runtime, pointer calls NULL with
 *             errno ENOSYS; phxfs_read and phxfs_write on a CPU buffer work.
 *             A child of vfork must not call.
 * Exit        Once exit() has begun its work on the library, calls return
 *             -ESHUTDOWN, pointer calls NULL with errno ESHUTDOWN. Accepted
 *             asynchronous batches and calls inside are finished first, within
 *             30 s (docs/lifetimes.md).
 * File fds    Borrowed, never closed or kept: until the call returns, or until
 *             wait or destroy returns for an asynchronous batch.
 */
#ifndef PHOENIX_H
#define PHOENIX_H

#if !defined(__linux__) || !defined(__LP64__) || \
    !(defined(__x86_64__) || defined(__aarch64__)) || \
    !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libphoenix supports only Linux LP64 little-endian on amd64 and arm64."
#endif

/* Callers rely on all of these being included from here. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One transfer of a batch. The array is the caller's: the library reads it
 * once, at the call, and afterwards writes only result.
 */
typedef struct phxfs_io_req {
	int     fd;         /* file, open for the batch's direction, seekable */
	int     device_id;  /* device whose registration holds buf; < 0: buf is CPU memory */
	void   *buf;        /* device address inside a registration, or CPU address */
	off_t   buf_offset; /* bytes added to buf, >= 0 */
	size_t  nbytes;     /* bytes to move */
	off_t   f_offset;   /* bytes from the start of the file, >= 0 */
	ssize_t result;     /* out: bytes moved (short at end of file), or -errno */
} phxfs_io_req_t;

/* An asynchronous batch: an id to pass to wait or destroy, never dereferenced. */
typedef struct phxfs_batch phxfs_batch_t;

/* Proof of the layout: a false condition makes an array of negative size. */
#define PHXFS_PROVE(name, cond) typedef char phxfs_proof_##name[(cond) ? 1 : -1]
PHXFS_PROVE(req_size, sizeof(phxfs_io_req_t) == 48);
PHXFS_PROVE(req_fd, offsetof(phxfs_io_req_t, fd) == 0);
PHXFS_PROVE(req_device_id, offsetof(phxfs_io_req_t, device_id) == 4);
PHXFS_PROVE(req_buf, offsetof(phxfs_io_req_t, buf) == 8);
PHXFS_PROVE(req_buf_offset, offsetof(phxfs_io_req_t, buf_offset) == 16);
PHXFS_PROVE(req_nbytes, offsetof(phxfs_io_req_t, nbytes) == 24);
PHXFS_PROVE(req_f_offset, offsetof(phxfs_io_req_t, f_offset) == 32);
PHXFS_PROVE(req_result, offsetof(phxfs_io_req_t, result) == 40);
#undef PHXFS_PROVE

/*
 * Opens a device, or counts one more user of it in this process.
 *
 * device_id   phxfs index, 0..7 (phxfs_find_dev gives it).
 * Returns     0.
 *             -1: EINVAL device_id out of range; else the errno of open(2) on
 *             the node: ENOENT module not loaded, EACCES no permission, EMFILE;
 *             host staging: EAGAIN no room for its threads, call again later.
 *             -EBUSY (errno EBUSY): the last close of this device still waits
 *             for its operations; call again later.
 * Lifetime    The library owns the node's fd, close-on-exec, until the close
 *             that matches the first open. Each success needs one phxfs_close.
 * Blocking    For the open(2) of the node only.
 * Order       None against other calls.
 */
int phxfs_open(int device_id);

/*
 * Gives back one phxfs_open; the last one releases every registration of the
 * device and closes it.
 *
 * device_id   phxfs index, 0..7.
 * Returns     0.
 *             -1: EINVAL device_id out of range; ENODEV not open, or another
 *             thread's last close is under way; else the kernel's errno for a
 *             registration that could not be released: the rest is done and
 *             the device is closed all the same.
 * Lifetime    After the last close no registration of the device exists; host
 *             addresses that phxfs_regmem gave for it must not be used. The
 *             device memory itself stays the caller's. Memory that was freed
 *             before this call is recognised where the vendor can tell, and is
 *             then not released a second time.
 * Blocking    The last close waits for operations in flight on the device;
 *             meanwhile new ones are refused. Other closes do not block.
 * Order       After every operation on the device that was accepted before.
 */
int phxfs_close(int device_id);

/*
 * Tells the alignment, in bytes, of registrations.
 *
 * Returns     65536 for NVIDIA and host; a power of two for any vendor. Where
 *             other calls are refused (Start, fork, Exit): 65536, errno set.
 * Blocking    No.
 */
uint64_t phxfs_get_page_size(void);

/*
 * Maps a vendor's device ordinal to the phxfs index of the same device.
 *
 * device_id   ordinal as this process numbers its devices (for NVIDIA: after
 *             CUDA_VISIBLE_DEVICES), >= 0. With the host connector: 0..7.
 * Returns     phxfs index, 0..7.
 *             -1: EINVAL negative; ENODEV no such ordinal, no vendor library,
 *             or no phxfs device for it. Only successes are remembered: after
 *             the module is loaded the call succeeds.
 * Blocking    The first call may initialise the vendor's library.
 * Order       None.
 */
int phxfs_find_dev(int device_id);

/*
 * Makes device memory reachable for file I/O (a registration).
 *
 * device_id   an open device, 0..7.
 * addr        device address, a multiple of phxfs_get_page_size().
 * len         bytes, > 0, a multiple of phxfs_get_page_size().
 * target_addr out: host address of the first byte. It is a real mapping: the
 *             caller may read, write, or pread into [target, target + len).
 * Returns     0. The same (addr, len) again while live counts one more reference
 *             and gives the same target; unless the vendor says that other
 *             memory lies there now: then the range is mapped afresh, and target
 *             is the new mapping's.
 *             -EINVAL: EINVAL NULL addr or target_addr, len 0 or unaligned, addr
 *             unaligned, addr + len overflows, device_id out of range, overlap
 *             with another registration (live or being released);
 *             ENODEV device not open; ESHUTDOWN its last close is under way.
 *             -EFAULT: mmap or the module's MAP failed; errno is the kernel's.
 *             Host connector: EFAULT the range is not all mapped and writable;
 *             EMFILE (or another errno of open or read) that could not be
 *             found out: it takes a descriptor for a moment.
 *             -ENOMEM: ENOMEM.
 *             After a failure *target_addr is unchanged.
 * Lifetime    The caller keeps the device memory allocated until the matching
 *             phxfs_deregmem or the last phxfs_close returns. The library owns
 *             the mapping at target: do not unmap or mremap it.
 * Blocking    For the pinning; and, for the same (addr, len) whose last
 *             deregistration is under way, until that has finished.
 * Order       I/O on the range is accepted once this has returned.
 */
int phxfs_regmem(int device_id, const void *addr, size_t len, void **target_addr);

/*
 * Gives back one reference of a registration; the last one releases it.
 *
 * device      the device given to phxfs_regmem.
 * addr, len   exactly the pair given to phxfs_regmem.
 * Returns     0.
 *             -1: EINVAL device out of range; ENODEV device not open; ESHUTDOWN
 *             its last close is under way; ENOENT no registration starts at
 *             addr, its length is not len, or another thread is already
 *             releasing it; else the errno of UNMAP (the registration stays and
 *             works) or munmap (the range stays taken, I/O there is refused):
 *             the call may be repeated.
 * Lifetime    After the last success target must not be used and the device
 *             memory may be freed. Free it after this call, not before.
 * Blocking    The last reference waits for I/O in flight inside the
 *             registration (asynchronous batches included, waited for or not);
 *             meanwhile new I/O there is refused.
 * Order       After every transfer in the registration that was accepted before.
 */
int phxfs_deregmem(int device, const void *addr, size_t len);

/*
 * Reads from a file into device or CPU memory.
 *
 * fd          file open for reading, seekable; its file offset does not move.
 * device_id   device whose registration holds buf; < 0: buf is CPU memory.
 * buf         device address anywhere inside a registration, or CPU address.
 * buf_offset  bytes added to buf, >= 0; the extent must end inside the
 *             registration of buf.
 * nbyte       bytes, >= 0. 0 returns 0 without a look at fd.
 * f_offset    bytes from the start of the file, >= 0.
 * Returns     bytes read: nbyte, or less at end of file, or less when an error
 *             came after some bytes had moved.
 *             -EINVAL: EINVAL negative nbyte or f_offset, f_offset + nbyte
 *             overflows, CPU buffer with negative buf_offset or an address
 *             that overflows; O_DIRECT with an address, length or offset that
 *             is not aligned as the file needs.
 *             -1: EINVAL device_id > 7, or negative buf_offset on a device
 *             buffer; ENODEV device not open; ESHUTDOWN device closing; EFAULT
 *             buf in no registration, extent not inside it, or the
 *             registration is being released.
 *             -errno of the kernel otherwise: EBADF, ESPIPE, EISDIR, EIO, ...
 *             (-EPERM equals -1; errno tells them apart).
 * Lifetime    buf and fd are borrowed until the call returns.
 * Blocking    Until the data has moved.
 * Order       None: neither against batches nor against other reads and writes.
 */
ssize_t phxfs_read(int fd, int device_id, void *buf, off_t buf_offset,
		   ssize_t nbyte, off_t f_offset);

/*
 * Writes device or CPU memory to a file.
 *
 * Parameters, lifetime, blocking and order as phxfs_read; fd is open for
 * writing and buf is only read.
 * Returns     bytes written: nbyte, or less when an error came after some bytes
 *             had moved. Failures as phxfs_read, and those of pwrite(2):
 *             -ENOSPC, -EFBIG, -EDQUOT, ... Data is in the page cache or on the
 *             device as the file's flags say; use fsync(2) for durability.
 */
ssize_t phxfs_write(int fd, int device_id, void *buf, off_t buf_offset,
		    ssize_t nbyte, off_t f_offset);

/*
 * Carries out n reads and returns when all are finished.
 *
 * reqs        array of n requests, any mix of files, devices and CPU buffers.
 * n           number of requests; <= 0 returns 0 at once.
 * Returns     0: every request moved all its bytes. > 0: the number of requests
 *             whose result differs from nbytes (short reads at end of file
 *             count); errno unchanged.
 *             -EINVAL: EINVAL reqs is NULL and n > 0. -ENOMEM: ENOMEM no memory
 *             for n requests; in both cases nothing was moved or written.
 *             Each result: bytes moved; or -EFAULT for anything wrong with the
 *             request itself (f_offset negative or f_offset + nbytes overflows,
 *             buf_offset negative, device out of range, not open or closing, buf
 *             outside a registration, extent not inside it, registration
 *             being released, NULL CPU buf even with 0 bytes); or the kernel's
 *             -errno as for phxfs_read (-ESPIPE for a file that cannot seek).
 * Lifetime    reqs, the buffers and the fds are borrowed until the call returns.
 * Blocking    Until its turn has come (Order) and all transfers are finished; it
 *             never fails because others are busy.
 * Order       Every batch takes a ticket when its call begins. An asynchronous
 *             batch starts after all batches with earlier tickets are complete,
 *             and no batch with a later ticket starts before it is complete,
 *             whatever the threads. Synchronous batches whose calls overlap in
 *             time may run side by side. Requests of one batch run in any order.
 */
int phxfs_read_batch(phxfs_io_req_t *reqs, int n);

/* Carries out n writes; otherwise as phxfs_read_batch. */
int phxfs_write_batch(phxfs_io_req_t *reqs, int n);

/*
 * Starts n reads and returns without waiting for them.
 *
 * reqs, n     as phxfs_read_batch. n <= 0 gives a handle whose wait returns 0.
 * Returns     a handle, to be passed once to phxfs_batch_wait or
 *             phxfs_batch_destroy.
 *             NULL: EINVAL reqs is NULL and n > 0; EBUSY 16 asynchronous batches
 *             of this process have I/O queued or running (the bound of the
 *             queue; a slot frees when a batch's I/O is finished, waited for or
 *             not; completed batches that nobody has waited for are unlimited);
 *             ENOMEM; ENOTSUP no helper thread could be started. After NULL
 *             nothing was started and no result was written.
 *             Requests with something wrong in themselves (phxfs_read_batch)
 *             get result -EFAULT now; all other results come at wait. A batch
 *             of which no request can run takes none of the 16 places.
 * Lifetime    The library borrows reqs until wait returns, and the buffers and
 *             fds until wait or destroy returns.
 * Blocking    No wait for I/O. The batch goes on without anyone waiting.
 * Order       As phxfs_read_batch: the ticket is taken here.
 */
phxfs_batch_t *phxfs_batch_submit_read(phxfs_io_req_t *reqs, int n);

/* Starts n writes; otherwise as phxfs_batch_submit_read. */
phxfs_batch_t *phxfs_batch_submit_write(phxfs_io_req_t *reqs, int n);

/*
 * Waits for a batch, writes its results and gives the handle back.
 *
 * handle      from a submit call of this process.
 * Returns     the number of requests whose result differs from nbytes; 0 is full
 *             success.
 *             -EINVAL: EINVAL NULL, not a handle, already waited for or
 *             destroyed, or made before fork by the parent. This is always
 *             detected. Of two threads waiting on one handle one gets the count,
 *             the other -EINVAL at once.
 * Lifetime    All results are written, by the calling thread, before the return;
 *             afterwards the library touches neither array nor buffers.
 * Blocking    Until the batch is complete. The caller lends a hand with I/O,
 *             which may be that of earlier batches.
 * Order       None of its own.
 */
int phxfs_batch_wait(phxfs_batch_t *handle);

/*
 * Waits for a batch's I/O and gives the handle back without any results.
 *
 * handle      as phxfs_batch_wait.
 * Returns     0. -EINVAL: EINVAL, as phxfs_batch_wait.
 * Lifetime    When it returns, reqs, the buffers and the fds are no longer used.
 * Blocking    Until the I/O is finished; transfers are not cancelled.
 * Order       None of its own.
 */
int phxfs_batch_destroy(phxfs_batch_t *handle);

/*
 * Names the engine that carries out batches.
 *
 * Returns     "io_uring" or "sync". The choice is made at the first call that
 *             needs an engine, this one included, and stays for the life of the
 *             process. NULL where other calls are refused (Start, fork, Exit):
 *             ENOMEM, EAGAIN, ENOSYS, ESHUTDOWN.
 * Lifetime    A constant string; do not free.
 * Blocking    For the first choice only.
 */
const char *phxfs_io_engine_name(void);

/*
 * Tells how this process reaches the memory of an open device (PHXFS_MODE).
 *
 * device_id   0..7.
 * Returns     0 full: the kernel module maps it; also the host connector's
 *             plain memory. 2 host staging: data goes through host memory and
 *             is copied by the vendor's driver. (1, the kernel module's own
 *             staging, is not returned yet.)
 *             -EINVAL: EINVAL bad id. -ENODEV: ENODEV not open.
 * Blocking    No.
 */
int phxfs_get_map_mode(int device_id);

/* phxfs_find_dev by the name that CUDA programs use. Not a symbol of the library. */
static inline int phxfs_find_dev_for_cuda_gpu(int device_id)
{
	return phxfs_find_dev(device_id);
}

#ifdef __cplusplus
}
#endif

#endif /* PHOENIX_H */
