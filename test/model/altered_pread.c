/*
 * altered_pread.c - for LD_PRELOAD: pread changes one byte of what it read beyond
 * the first 64 KiB of a file, so that a program which compares data with a plain
 * read must notice. libphoenix does not call the C library's pread.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t pread(int fd, void *to, size_t size, off_t at)
{
	ssize_t n = syscall(SYS_pread64, fd, to, size, at);

	if (n > 0 && at > 1 << 16)
		((char *)to)[n - 1] ^= 1;
	return n;
}

ssize_t pread64(int fd, void *to, size_t size, off_t at)
{
	return pread(fd, to, size, at);
}
