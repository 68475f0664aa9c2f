/* library [WHAT-]HOW: open, register, read, release through libphoenix. What
 * fails once is tried again. HOW the registration ends: deregmem (or nothing),
 * close, exit with everything open, killed, without exit handlers. WHAT happened
 * to the device memory before that, if anything:
 *   freed    the driver freed it, as cudaFree does
 *   chunks   nothing, and it is three chunks of mapped memory (cuMemMap)
 *   hole     of three such chunks the one in the middle was freed
 *   refill   and other memory was mapped in its place
 *   late     nothing, but the vendor's library ($GPUS) has come into the process since
 * Or WHAT is struck-, and a signal whose handler calls exit comes while the pin is made
 * (HOW is regmem), or when UNMAP has been decided on (deregmem, close). */
#include "kit.h"

#include <dlfcn.h>

#include "phoenix.h"

enum { N = 4 * 65536, CHUNK = 2 << 20 };
static const void *const gpu = (const void *)GPU;
static char data[N];
static size_t len = N; /* of the registration; I/O is at its start */

static int file(void) {
	for (int i = 0; i < N; i++)
		data[i] = (char)(i * 7 + i / 251);
	int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, data, N) == N);
	return fd;
}

static void reads(int fd, char *target) {
	memset(target, 0, N);
	printf("read %zd ", phxfs_read(fd, 0, (void *)GPU, 0, N, 0));
	CHECK(memcmp(target, data, N) == 0);
}

/* The vendor's library (fake_gpus.c) and the driver both know it. */
static void freed(unsigned long long from, size_t n, int again) {
	void (*gone)(unsigned long long, unsigned long long, int) =
		(void (*)(unsigned long long, unsigned long long, int))dlsym(RTLD_DEFAULT, "fake_gpus_free");
	CHECK(gone != NULL);
	gone(from, n, again);
	CHECK(command("revoke") == 0);
}

static void leave(int sig) {
	(void)sig;
	exit(7);
}

/* While MAP takes its time, or in the vendor's answer before an UNMAP. A signal
 * that misses the MAP comes again. */
static void struck(const char *how) {
	void *target;
	signal(SIGUSR1, leave);
	signal(SIGALRM, leave);
	CHECK(phxfs_open(0) == 0);
	while (!strcmp(how, "regmem")) {
		ualarm(30000, 0);
		CHECK(phxfs_regmem(0, gpu, N, &target) == 0 && phxfs_deregmem(0, gpu, N) == 0);
	}
	CHECK(phxfs_regmem(0, gpu, N, &target) == 0);
	void (*strike)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "fake_gpus_strike");
	CHECK(strike != NULL);
	strike();
	CHECK(!strcmp(how, "close") ? phxfs_close(0) == 0 : phxfs_deregmem(0, gpu, N) == 0);
}

int main(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "";
	if (!strncmp(how, "struck-", 7))
		return struck(how + 7), 0;
	int hole = !strncmp(how, "hole", 4), refill = !strncmp(how, "refill", 6), fd = file(), r;
	if (hole || refill || !strncmp(how, "chunks", 6))
		len = 3 * CHUNK;
	void *target = NULL;
	r = phxfs_open(0);
	printf("open %d", r);
	if (r != 0)
		return puts("") < 0;
	r = phxfs_regmem(0, gpu, len, &target);
	printf(" regmem %d ", r);
	if (r != 0)
		printf("again %d ", phxfs_regmem(0, gpu, len, &target));
	reads(fd, (char *)target);
	memset(target, 0, N);
	phxfs_io_req_t q[4];
	for (int i = 0; i < 4; i++)
		q[i] = (phxfs_io_req_t){.fd = fd, .device_id = 0, .buf = (void *)GPU, .buf_offset = i * 65536, .nbytes = 65536, .f_offset = i * 65536};
	printf("batch %d ", phxfs_read_batch(q, 4));
	CHECK(memcmp(target, data, N) == 0);
	if (strncmp(how, "freed", 5) == 0)
		freed(GPU, N, 0);
	if (hole || refill)
		freed(GPU + CHUNK, CHUNK, refill);
	if (strncmp(how, "late", 4) == 0)
		CHECK(dlopen(getenv("GPUS"), RTLD_NOW));
	if (strcmp(how, "killed") == 0)
		_exit(0);
	if (strstr(how, "exit"))
		return 0;
	if (strstr(how, "close")) {
		printf("close %d\n", phxfs_close(0));
		return 0;
	}
	r = phxfs_deregmem(0, gpu, len);
	printf("deregmem %d ", r);
	if (r != 0) {
		reads(fd, (char *)target);
		printf("again %d ", phxfs_deregmem(0, gpu, len));
	}
	printf("close %d\n", phxfs_close(0));
	return 0;
}
