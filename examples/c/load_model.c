/*
 * load_model.c - loads every tensor of a safetensors file into one registered
 * buffer, then compares each of them with a plain read.
 *
 * Build:  gcc -O2 -Wall -Iinclude -o build/load_model examples/c/load_model.c \
 *             examples/c/watched_read.c examples/c/safetensors.c \
 *             examples/c/safetensors_header.c examples/c/json.c \
 *             -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN'
 * Run:    PHXFS_VENDOR=HOST build/load_model [--progress] FILE
 *
 * The load is one batch. A batch tells nothing before its end, so when somebody
 * watches (stderr is a terminal, or --progress) the same requests go as a row of
 * asynchronous batches instead: see watched_read.h.
 *
 * The buffer is ordinary memory, which the host connector takes as device
 * memory. On a GPU it would come from cudaMalloc (or hipMalloc, aclrtMalloc);
 * nothing else changes, for the checks look through the host mapping (target).
 *
 * Exit: 0 loaded and verified, 1 anything else, 2 wrong arguments.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <limits.h>
#include <phoenix.h>
#include <time.h>

#include "safetensors.h"
#include "watched_read.h"

enum {
	DEVICE = 0,
	PIECE = 4 << 20, /* most bytes of one request */
	ROWS = 6         /* of the printed table */
};

static int fail(const char *what)
{
	fprintf(stderr, "load_model: %s: %s\n", what, strerror(errno));
	return 1;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One request per PIECE of each tensor; a tensor keeps its place in the data. */
static phxfs_io_req_t *plan(const struct st_file *f, int fd, void *buf, int *n)
{
	size_t i, pieces = 0;
	phxfs_io_req_t *reqs, *r;

	for (i = 0; i < f->count; i++)
		pieces += (size_t)((f->tensors[i].end - f->tensors[i].begin + PIECE - 1) / PIECE);
	errno = EOVERFLOW;
	reqs = pieces <= INT_MAX ? calloc(pieces, sizeof *reqs) : NULL;
	for (i = 0, r = reqs; reqs && i < f->count; i++) {
		uint64_t at = f->tensors[i].begin, end = f->tensors[i].end;
		for (; at < end; at += r->nbytes, r++) {
			r->fd = fd;
			r->device_id = DEVICE;
			r->buf = buf;
			r->buf_offset = (off_t)at;
			r->nbytes = end - at < PIECE ? (size_t)(end - at) : PIECE;
			r->f_offset = f->data_at + (off_t)at;
		}
	}
	*n = (int)pieces;
	return reqs;
}

static int load(const struct st_file *f, int fd, void *buf, int watched)
{
	int n, i, failed;
	phxfs_io_req_t *reqs = plan(f, fd, buf, &n);
	double begin = seconds(), took;

	if (!reqs)
		return fail("the requests");
	failed = watched ? watched_read(reqs, n) : phxfs_read_batch(reqs, n);
	took = seconds() - begin;
	if (failed < 0)
		fail("reading");
	for (i = 0; failed > 0 && i < n; i++)
		if (reqs[i].result != (ssize_t)reqs[i].nbytes)
			fprintf(stderr, "load_model: %zu bytes at file offset %lld: %s\n", reqs[i].nbytes,
				(long long)reqs[i].f_offset,
				reqs[i].result < 0 ? strerror((int)-reqs[i].result) : "the file ends before them");
	if (failed == 0)
		printf("C       engine %s: %zu tensors, %llu bytes in %d requests%s, %.3f s, %.2f GB/s\n",
		       phxfs_io_engine_name(), f->count, (unsigned long long)f->data_bytes, n,
		       watched ? "" : " of one batch", took, (double)f->data_bytes / took / 1e9);
	free(reqs);
	return failed != 0;
}

static int same_as_file(const struct st_tensor *t, int fd, off_t data_at, const char *data, char *plain)
{
	uint64_t at = t->begin;

	while (at < t->end) {
		size_t want = t->end - at < PIECE ? (size_t)(t->end - at) : PIECE;
		ssize_t n = pread(fd, plain, want, data_at + (off_t)at);
		if (n <= 0 || memcmp(plain, data + at, (size_t)n) != 0)
			return 0;
		at += (uint64_t)n;
	}
	return 1;
}

static void print_row(const struct st_tensor *t)
{
	char shape[ST_MAX_DIMS * 22 + 3] = "[", name[49];
	size_t used = 1;
	int i;

	for (i = 0; i < t->ndim; i++)
		used += (size_t)sprintf(shape + used, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
	strcpy(shape + used, "]");
	snprintf(name, sizeof name, "%s", t->name);
	st_printable(name);
	printf("  %-48s %-5s %-14s %10llu\n", name, t->dtype, shape, (unsigned long long)(t->end - t->begin));
}

/* Compares every tensor with the file. data: the first byte of the data, as the CPU sees it. */
static int verify(const struct st_file *f, int fd, const char *data)
{
	char *plain = malloc(PIECE);
	size_t i, differ = 0;

	if (!plain)
		return fail("malloc");
	for (i = 0; i < f->count; i++) {
		if (i < ROWS)
			print_row(&f->tensors[i]);
		if (!same_as_file(&f->tensors[i], fd, f->data_at, data, plain)) {
			printf("  tensor %zu differs from a plain read:\n", i);
			print_row(&f->tensors[i]);
			differ++;
		}
	}
	free(plain);
	if (f->count > ROWS)
		printf("  and %zu more\n", f->count - ROWS);
	if (differ)
		fprintf(stderr, "load_model: %zu of %zu tensors differ from a plain read\n", differ, f->count);
	else
		printf("C       verified: each of %zu tensors equal to a plain read\n", f->count);
	return differ != 0;
}

static int load_and_verify(const struct st_file *f, int fd, int watched)
{
	size_t page = (size_t)phxfs_get_page_size();
	size_t len = ((size_t)f->data_bytes + page - 1) / page * page;
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
		rc = load(f, fd, buf, watched) || verify(f, fd, target);
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
	int forced = argc == 3 && strcmp(argv[1], "--progress") == 0;
	struct st_file f;
	int fd, rc = 1;

	if (argc != 2 + forced) {
		fprintf(stderr, "usage: load_model [--progress] FILE.safetensors\n");
		return 2;
	}
	fd = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(argv[argc - 1]);
	if (st_read(fd, &f) != 0)
		fprintf(stderr, "load_model: %s: %s\n", argv[argc - 1], f.why);
	else if (f.data_bytes == 0)
		fprintf(stderr, "load_model: %s: no data to load\n", argv[argc - 1]);
	else
		rc = load_and_verify(&f, fd, forced || isatty(STDERR_FILENO));
	st_free(&f);
	close(fd);
	return rc;
}
