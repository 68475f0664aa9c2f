/*
 * read_one.c - one read from a file into a registered buffer, checked.
 *
 * Build:  gcc -O2 -Wall -Iinclude -o build/read_one examples/c/read_one.c \
 *             -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN'
 * Run:    PHXFS_VENDOR=HOST build/read_one FILE
 *
 * The buffer is ordinary memory, which the host connector takes as device
 * memory. On a GPU it would come from cudaMalloc (or hipMalloc, aclrtMalloc),
 * and the check would compare through the mapping that phxfs_regmem returns.
 */
#include <errno.h>
#include <phoenix.h>

enum { DEVICE = 0, MOST = 16 << 20 };

static int fail(const char *what)
{
	fprintf(stderr, "read_one: %s: %s\n", what, strerror(errno));
	return 1;
}

/* The first bytes of fd must be those of p; n bytes. */
static int same_as_file(int fd, const char *p, size_t n)
{
	char plain[1 << 16];
	size_t done = 0;

	while (done < n) {
		size_t want = n - done < sizeof plain ? n - done : sizeof plain;
		ssize_t got = pread(fd, plain, want, (off_t)done);
		if (got <= 0 || memcmp(plain, p + done, (size_t)got))
			return 0;
		done += (size_t)got;
	}
	return 1;
}

static int read_and_check(int fd, void *buf, const char *target, size_t n)
{
	ssize_t got = phxfs_read(fd, DEVICE, buf, 0, (ssize_t)n, 0);

	if (got < 0)
		return fail("phxfs_read");
	if ((size_t)got != n) {
		fprintf(stderr, "read_one: got %zd bytes of %zu\n", got, n);
		return 1;
	}
	if (!same_as_file(fd, target, n)) {
		fprintf(stderr, "read_one: the bytes differ from those pread gives\n");
		return 1;
	}
	printf("read %zu bytes into a registered buffer; pread gives the same\n", n);
	return 0;
}

/* Registers buf, reads, and gives the registration back. */
static int with_registration(int fd, void *buf, size_t len, size_t n)
{
	void *target;
	int rc;

	if (phxfs_regmem(DEVICE, buf, len, &target) != 0)
		return fail("phxfs_regmem (is PHXFS_VENDOR=HOST set?)");
	rc = read_and_check(fd, buf, target, n);
	if (phxfs_deregmem(DEVICE, buf, len) != 0)
		return fail("phxfs_deregmem");
	return rc;
}

int main(int argc, char **argv)
{
	struct stat st;
	void *buf;
	size_t page, len, n;
	int fd, rc;

	if (argc != 2) {
		fprintf(stderr, "usage: read_one FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return fail(argv[1]);
	if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		fprintf(stderr, "read_one: %s: not a regular file with content\n", argv[1]);
		return 1;
	}
	n = st.st_size < MOST ? (size_t)st.st_size : (size_t)MOST;
	page = (size_t)phxfs_get_page_size();
	len = (n + page - 1) / page * page; /* registrations are whole pages */
	errno = posix_memalign(&buf, page, len);
	if (errno != 0)
		return fail("posix_memalign");
	if (phxfs_open(DEVICE) != 0)
		return fail("phxfs_open (no phxfs device? PHXFS_VENDOR=HOST needs none)");
	rc = with_registration(fd, buf, len, n);
	if (phxfs_close(DEVICE) != 0)
		rc = fail("phxfs_close");
	free(buf); /* after phxfs_deregmem, never before */
	close(fd);
	return rc;
}
