
/* Appended to a source that includes phxfs_ioctl.h or common.h. */
int use_ioctl(int fd, void *mapping, size_t len);
int use_ioctl(int fd, void *mapping, size_t len)
{
	struct phxfs_map_param p = { 0, 0, 0, 0, 0, 0, 0, 0 };

	p.c_vaddr = (uint64_t)(uintptr_t)mapping;
	p.c_size = p.n_size = len;
	return ioctl(fd, PHXFS_IOC_MAP, &p) == 0 && ioctl(fd, PHXFS_IOC_UNMAP, &p) == 0;
}
