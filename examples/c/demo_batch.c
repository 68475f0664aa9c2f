/*
 * demo_batch.c - loads a whole file with one batch into a registered buffer,
 * then compares every byte with a plain read.
 *
 * Build:  gcc -O2 -Wall -Iinclude -o build/demo_batch examples/c/demo_batch.c \
 *             -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN'
 * Run:    PHXFS_VENDOR=HOST build/demo_batch FILE
 *
 * Exit: 0 loaded and verified, 1 anything else, 2 wrong arguments.
 */
#include <errno.h>
#include <phoenix.h>
#include <time.h>

enum { DEVICE = 0, PIECE = 4 << 20 };

static int fail(const char *what)
{
	fprintf(stderr, "demo_batch: %s: %s\n", what, strerror(errno));
	return 1;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* One request per PIECE of the file, each to its own place in buf. */
static phxfs_io_req_t *cut(int fd, void *buf, size_t size, int n)
{
	phxfs_io_req_t *reqs = calloc((size_t)n, sizeof *reqs);
	int i;

	for (i = 0; reqs && i < n; i++) {
		size_t at = (size_t)i * PIECE;
		reqs[i].fd = fd;
		reqs[i].device_id = DEVICE;
		reqs[i].buf = buf;
		reqs[i].buf_offset = (off_t)at;
		reqs[i].nbytes = size - at < PIECE ? size - at : PIECE;
		reqs[i].f_offset = (off_t)at;
	}
	return reqs;
}

static void report_failures(const phxfs_io_req_t *reqs, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (reqs[i].result != (ssize_t)reqs[i].nbytes)
			fprintf(stderr, "demo_batch: request %d, offset %lld: %zd of %zu bytes%s%s\n",
				i, (long long)reqs[i].f_offset,
				reqs[i].result < 0 ? (ssize_t)0 : reqs[i].result, reqs[i].nbytes,
				reqs[i].result < 0 ? ": " : "",
				reqs[i].result < 0 ? strerror((int)-reqs[i].result) : "");
}

static int load(int fd, void *buf, size_t size)
{
	int n = (int)(round_up(size, PIECE) / PIECE), failed;
	phxfs_io_req_t *reqs = cut(fd, buf, size, n);
	double begin, took;

	if (!reqs)
		return fail("calloc");
	begin = seconds();
	failed = phxfs_read_batch(reqs, n);
	took = seconds() - begin;
	if (failed < 0) {
		free(reqs);
		return fail("phxfs_read_batch");
	}
	if (failed > 0)
		report_failures(reqs, n);
	else
		printf("C       engine %s: %zu bytes in one batch of %d requests, %.3f s, %.2f GB/s\n",
		       phxfs_io_engine_name(), size, n, took, (double)size / took / 1e9);
	free(reqs);
	return failed > 0;
}

static int verify(int fd, const char *got, size_t size)
{
	char *plain = malloc(PIECE);
	size_t at = 0;

	if (!plain)
		return fail("malloc");
	while (at < size) {
		ssize_t n = pread(fd, plain, size - at < PIECE ? size - at : PIECE, (off_t)at);
		if (n <= 0 || memcmp(plain, got + at, (size_t)n) != 0) {
			fprintf(stderr, "demo_batch: a plain read differs in the piece at offset %zu\n", at);
			free(plain);
			return 1;
		}
		at += (size_t)n;
	}
	free(plain);
	printf("C       verified: %zu bytes equal to a plain read\n", size);
	return 0;
}

static int demo(int fd, size_t size)
{
	size_t page = (size_t)phxfs_get_page_size(), len = round_up(size, page);
	void *buf, *target;
	int rc;

	errno = posix_memalign(&buf, page, len);
	if (errno != 0)
		return fail("posix_memalign");
	memset(buf, 0xa5, len); /* bytes that were never loaded must show */
	if (phxfs_open(DEVICE) != 0) {
		free(buf);
		return fail("phxfs_open (no phxfs device? PHXFS_VENDOR=HOST needs none)");
	}
	if (phxfs_regmem(DEVICE, buf, len, &target) != 0) {
		rc = fail("phxfs_regmem (is PHXFS_VENDOR=HOST set?)");
	} else {
		rc = load(fd, buf, size);
		if (rc == 0)
			rc = verify(fd, target, size);
		if (phxfs_deregmem(DEVICE, buf, len) != 0)
			rc = fail("phxfs_deregmem");
	}
	if (phxfs_close(DEVICE) != 0)
		rc = fail("phxfs_close");
	free(buf);
	return rc;
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd, rc;

	if (argc != 2) {
		fprintf(stderr, "usage: demo_batch FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return fail(argv[1]);
	if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		fprintf(stderr, "demo_batch: %s: not a regular file with content\n", argv[1]);
		return 1;
	}
	rc = demo(fd, (size_t)st.st_size);
	close(fd);
	return rc;
}
