
/* Appended to a source that includes phoenix.h: every declaration has exactly
 * the type of docs/abi.md, and what callers rely on came with it. */
int use_phoenix(void);
int use_phoenix(void)
{
	int (*one[])(int) = { phxfs_open, phxfs_close, phxfs_find_dev, phxfs_find_dev_for_cuda_gpu };
	uint64_t (*page)(void) = phxfs_get_page_size;
	int (*reg)(int, const void *, size_t, void **) = phxfs_regmem;
	int (*dereg)(int, const void *, size_t) = phxfs_deregmem;
	ssize_t (*io[])(int, int, void *, off_t, ssize_t, off_t) = { phxfs_read, phxfs_write };
	int (*batch[])(phxfs_io_req_t *, int) = { phxfs_read_batch, phxfs_write_batch };
	phxfs_batch_t *(*submit[])(phxfs_io_req_t *, int) = { phxfs_batch_submit_read, phxfs_batch_submit_write };
	int (*end[])(phxfs_batch_t *) = { phxfs_batch_wait, phxfs_batch_destroy };
	const char *(*name)(void) = phxfs_io_engine_name;
	phxfs_io_req_t req = { 0, -1, NULL, 0, 0, 0, 0 };
	struct stat st;
	int fd = open("/dev/null", O_RDONLY);

	memset(&st, 0, sizeof st);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode) || ioctl(fd, 0) == 0 || close(fd) != 0)
		printf("%s\n", "unexpected");
	free(malloc(16));
	return mmap(NULL, 0, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED && one[0] != NULL && page != NULL &&
	       reg != NULL && dereg != NULL && io[0] != NULL && batch[0] != NULL && submit[0] != NULL &&
	       end[0] != NULL && name != NULL && req.result == 0 && sizeof req == 48;
}
