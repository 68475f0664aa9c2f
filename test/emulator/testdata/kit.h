/* kit.h - what the programs of this folder share. A program runs the case that
 * its first argument names and exits 0, or says what was not as expected and
 * exits 1. Nothing in them knows of the emulator. */
#ifndef KIT_H
#define KIT_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phxfs_ioctl.h"

#define UNIT (64UL << 10)
#define GPU 0x7f0000000000UL /* some device address */

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__, #cond, errno, strerror(errno)); \
			exit(1); \
		} \
	} while (0)

/* The call fails with that errno. */
#define FAILS(call, want) \
	do { \
		errno = 0; \
		CHECK((call) == -1); \
		CHECK(errno == (want)); \
	} while (0)

struct test { const char *name; void (*run)(void); };

static inline int node(int index) {
	char path[64];
	snprintf(path, sizeof path, "/dev/phxfs_dev%d", index);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static inline char *shared(int fd, size_t n) {
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	return (char *)p;
}

static inline int request(int fd, unsigned long cmd, const void *host, size_t host_len, uint64_t addr, size_t addr_len) {
	struct phxfs_map_param a;
	memset(&a, 0, sizeof a);
	a.c_vaddr = (uint64_t)host;
	a.c_size = host_len;
	a.n_vaddr = addr;
	a.n_size = addr_len;
	return ioctl(fd, cmd, &a);
}

static inline int map(int fd, const void *host, size_t n, uint64_t addr) {
	return request(fd, PHXFS_IOC_MAP, host, n, addr, n);
}

static inline int unmap(int fd, const void *host, size_t n, uint64_t addr) {
	return request(fd, PHXFS_IOC_UNMAP, host, n, addr, n);
}

/* A registration of one unit. */
static inline char *registration(int fd, uint64_t addr) {
	char *p = shared(fd, UNIT);
	CHECK(map(fd, p, UNIT, addr) == 0);
	return p;
}

/* The signal that touching the byte raises, or 0. */
static sigjmp_buf kit_back;
static void kit_caught(int sig) { siglongjmp(kit_back, sig); }
static inline int touch(volatile char *p) {
	signal(SIGBUS, kit_caught);
	signal(SIGSEGV, kit_caught);
	int sig = sigsetjmp(kit_back, 1);
	if (sig == 0)
		*p = 1;
	signal(SIGBUS, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	return sig;
}

/* The control names: opening one is the command. */
static inline int command(const char *text) {
	char path[256];
	const char *root = getenv("PHX_EMULATE_CONTROL");
	CHECK(root != NULL);
	snprintf(path, sizeof path, "%s/%s", root, text);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static inline int run_case(int argc, char **argv, const struct test *tests, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (argc > 1 && strcmp(argv[1], tests[i].name) == 0) {
			tests[i].run();
			return 0;
		}
	for (size_t i = 0; i < n; i++)
		puts(tests[i].name);
	return argc > 1 ? 2 : 0;
}

#define CASES(tests) \
	int main(int argc, char **argv) { return run_case(argc, argv, tests, sizeof tests / sizeof *tests); }

#endif
