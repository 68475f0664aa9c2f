/* library [exit | close | killed | freed-deregmem | freed-close | freed-exit]: open, register,
 * read, release through libphoenix. What fails once is tried again. With "exit"
 * it ends with everything open, "killed" runs no exit handler. freed-*: the driver frees the device memory, as
 * cudaFree does, before the registration is given back in that way. */
#include "kit.h"

#include <dlfcn.h>

#include "phoenix.h"

enum { N = 4 * 65536 };
static const void *const gpu = (const void *)GPU;
static char data[N];

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
static void freed(void) {
	void (*gone)(unsigned long long, unsigned long long) = (void (*)(unsigned long long, unsigned long long))dlsym(RTLD_DEFAULT, "fake_gpus_free");
	CHECK(gone != NULL);
	gone(GPU, N);
	CHECK(command("revoke") == 0);
}

int main(int argc, char **argv) {
	const char *how = argc > 1 ? argv[1] : "";
	int fd = file(), r;
	void *target = NULL;
	r = phxfs_open(0);
	printf("open %d", r);
	if (r != 0)
		return puts("") < 0;
	r = phxfs_regmem(0, gpu, N, &target);
	printf(" regmem %d ", r);
	if (r != 0)
		printf("again %d ", phxfs_regmem(0, gpu, N, &target));
	reads(fd, (char *)target);
	memset(target, 0, N);
	phxfs_io_req_t q[4];
	for (int i = 0; i < 4; i++)
		q[i] = (phxfs_io_req_t){.fd = fd, .device_id = 0, .buf = (void *)GPU, .buf_offset = i * 65536, .nbytes = 65536, .f_offset = i * 65536};
	printf("batch %d ", phxfs_read_batch(q, 4));
	CHECK(memcmp(target, data, N) == 0);
	if (strncmp(how, "freed", 5) == 0)
		freed();
	if (strcmp(how, "killed") == 0)
		_exit(0);
	if (strstr(how, "exit"))
		return 0;
	if (strstr(how, "close")) {
		printf("close %d\n", phxfs_close(0));
		return 0;
	}
	r = phxfs_deregmem(0, gpu, N);
	printf("deregmem %d ", r);
	if (r != 0) {
		reads(fd, (char *)target);
		printf("again %d ", phxfs_deregmem(0, gpu, N));
	}
	printf("close %d\n", phxfs_close(0));
	return 0;
}
