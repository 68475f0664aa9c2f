/*
 * kv_prefetch.c - reads the KV blocks of a model layer by layer: first each
 * layer when it is needed, then ahead, while earlier layers are computed.
 *
 * Build:  gcc -O2 -Wall -Iinclude -o build/kv_prefetch examples/c/kv_prefetch.c \
 *             -Lbuild -lphoenix -Wl,-rpath,'$ORIGIN'
 * Run:    PHXFS_VENDOR=HOST build/kv_prefetch FILE [MICROSECONDS]
 *
 * FILE stands for a store of KV blocks, any file of 4 MiB or more. It holds, for
 * one group of tokens after the other, one block per layer: a layer's blocks lie
 * scattered, each is one request, each layer is one batch. Every run starts with
 * the file out of the page cache where the system lets it go; of three runs each
 * way the fastest counts.
 *
 * The computing stands for kernels of a device: it takes MICROSECONDS a layer, or
 * as long as reading a layer took, which is where overlap gains most (half the
 * time), and the CPU sleeps but for a sum over the data.
 *
 * A device build would change three things. buf comes from cudaMalloc (or
 * hipMalloc, aclrtMalloc). compute() launches the kernels of a layer, after
 * phxfs_batch_wait for it has returned, and waits for their end. Memory that is
 * read into again, as in a ring of a few layers, is submitted again only after
 * the kernels that use it have ended; here each layer has its own.
 *
 * Exit: 0 done and verified, 1 anything else, 2 wrong arguments.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <phoenix.h>
#include <time.h>

enum { DEVICE = 0, LAYERS = 32, BLOCK = 128 << 10, AHEAD = 8, TRIES = 3 };
enum { MOST_GROUPS = 64 };

struct cache {
	int fd, groups;         /* groups: blocks of one layer */
	char *buf, *target;     /* for requests; as the CPU sees it */
	size_t layer_bytes;
	phxfs_io_req_t *reqs;   /* LAYERS times groups */
	double kernel;          /* seconds of computing a layer */
	double reading;         /* seconds, all layers of the last run without overlap */
	uint64_t sum;           /* of the last run's computing */
};

static int fail(const char *what)
{
	fprintf(stderr, "kv_prefetch: %s: %s\n", what, strerror(errno));
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void plan(struct cache *c)
{
	int layer, group;

	for (layer = 0; layer < LAYERS; layer++)
		for (group = 0; group < c->groups; group++) {
			phxfs_io_req_t *r = &c->reqs[layer * c->groups + group];
			r->fd = c->fd;
			r->device_id = DEVICE;
			r->buf = c->buf;
			r->buf_offset = (off_t)(layer * c->layer_bytes) + (off_t)group * BLOCK;
			r->nbytes = BLOCK;
			r->f_offset = ((off_t)group * LAYERS + layer) * BLOCK;
		}
}

/* Its sum depends on every byte: a layer that was computed before its data had
 * come gives another one. */
static uint64_t compute(const struct cache *c, int layer)
{
	const uint64_t *p = (const void *)(c->target + (size_t)layer * c->layer_bytes);
	size_t i, n = c->layer_bytes / sizeof *p;
	double left = seconds() + c->kernel;
	struct timespec t;
	uint64_t sum = 0;

	for (i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x9e3779b97f4a7c15u;
	left -= seconds();
	if (left > 0) {
		t.tv_sec = (time_t)left;
		t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
		nanosleep(&t, NULL);
	}
	return sum;
}

/* Before each run: nothing of the file in the buffer, nor in the page cache. */
static void forget(struct cache *c)
{
	memset(c->target, 0xa5, LAYERS * c->layer_bytes);
	c->sum = 0;
	(void)posix_fadvise(c->fd, 0, 0, POSIX_FADV_DONTNEED); /* tmpfs keeps it */
}

static int arrived(int failed)
{
	if (failed < 0)
		return fail("a batch");
	if (failed > 0)
		fprintf(stderr, "kv_prefetch: %d requests of a layer failed\n", failed);
	return failed == 0;
}

static int run_plain(struct cache *c)
{
	int layer;

	c->reading = 0;
	for (layer = 0; layer < LAYERS; layer++) {
		double begin = seconds();
		if (!arrived(phxfs_read_batch(c->reqs + layer * c->groups, c->groups)))
			return 0;
		c->reading += seconds() - begin;
		c->sum += compute(c, layer);
	}
	return 1;
}

static int run_overlapped(struct cache *c)
{
	phxfs_batch_t *flight[LAYERS];
	int layer, next = 0, good = 1;

	for (layer = 0; layer < LAYERS; layer++) {
		phxfs_io_req_t *reqs = c->reqs + layer * c->groups;
		/* NULL (a full queue, say) costs only the overlap: read when needed. */
		for (; good && next < LAYERS && next <= layer + AHEAD; next++)
			flight[next] = phxfs_batch_submit_read(c->reqs + next * c->groups, c->groups);
		if (layer >= next)
			break;
		if (!arrived(flight[layer] ? phxfs_batch_wait(flight[layer]) : phxfs_read_batch(reqs, c->groups)))
			good = 0; /* and go on: what is in flight must end */
		if (good)
			c->sum += compute(c, layer);
	}
	return good;
}

/* Every block must equal a plain read. */
static int verify(const struct cache *c)
{
	static char plain[BLOCK];
	int i;

	for (i = 0; i < LAYERS * c->groups; i++) {
		const phxfs_io_req_t *r = &c->reqs[i];
		if (pread(c->fd, plain, BLOCK, r->f_offset) != BLOCK ||
		    memcmp(plain, c->target + r->buf_offset, BLOCK) != 0) {
			fprintf(stderr, "kv_prefetch: block %d of layer %d differs from a plain read\n",
				i % c->groups, i / c->groups);
			return 0;
		}
	}
	return 1;
}

/* One run, verified. Returns its seconds, or -1. */
static double timed(struct cache *c, int (*run)(struct cache *))
{
	double begin, took;
	int good;

	forget(c);
	begin = seconds();
	good = run(c);
	took = seconds() - begin;
	return good && verify(c) ? took : -1;
}

static void report(double plain, double reading, double ahead)
{
	double computing = plain - reading, gained = plain - ahead;
	double most = reading < computing ? reading : computing;

	printf("without overlap  %.4f s (reading %.4f s, computing %.4f s)\n", plain, reading, computing);
	printf("with overlap     %.4f s, up to %d layers ahead\n", ahead, AHEAD);
	printf("overlap gained   %.4f s: %.0f %% of the time, %.0f %% of what can overlap\n", gained,
	       100 * gained / plain, 100 * gained / most);
	printf("verified         every block of every run equal to a plain read, and the sums\n");
}

static int measure(struct cache *c)
{
	double plain = 1e9, ahead = 1e9, reading = 0, a, p;
	uint64_t sum;
	int i;

	if (timed(c, run_plain) < 0) /* for the time of reading */
		return 0;
	sum = c->sum;
	if (c->kernel <= 0)
		c->kernel = c->reading / LAYERS;
	printf("engine %s: %d layers of %d blocks of %d KiB, computing takes %.2f ms a layer\n",
	       phxfs_io_engine_name(), LAYERS, c->groups, BLOCK >> 10, 1e3 * c->kernel);
	for (i = 0; i < TRIES; i++) {
		p = timed(c, run_plain);
		a = p < 0 ? p : timed(c, run_overlapped);
		if (a < 0)
			return 0;
		if (c->sum != sum) {
			fprintf(stderr, "kv_prefetch: a layer was computed before its data had come\n");
			return 0;
		}
		if (p < plain) {
			plain = p;
			reading = c->reading;
		}
		ahead = a < ahead ? a : ahead;
	}
	report(plain, reading, ahead);
	return 1;
}

/* Memory, device and registration around measure. Returns 1 when all went well. */
static int prepare(struct cache *c)
{
	size_t len = LAYERS * c->layer_bytes; /* a multiple of 4 MiB, so of any page size */
	void *buf, *target;
	int good = 0;

	errno = posix_memalign(&buf, (size_t)phxfs_get_page_size(), len);
	if (errno != 0)
		return fail("posix_memalign");
	c->reqs = calloc((size_t)(LAYERS * c->groups), sizeof *c->reqs);
	c->buf = buf;
	if (!c->reqs)
		fail("calloc");
	else if (phxfs_open(DEVICE) != 0)
		fail("phxfs_open (no phxfs device? PHXFS_VENDOR=HOST needs none)");
	else if (phxfs_regmem(DEVICE, buf, len, &target) != 0)
		fail("phxfs_regmem (is PHXFS_VENDOR=HOST set?)");
	else {
		c->target = target;
		plan(c);
		good = measure(c);
		if (phxfs_deregmem(DEVICE, buf, len) != 0)
			good = fail("phxfs_deregmem");
		if (phxfs_close(DEVICE) != 0)
			good = fail("phxfs_close");
	}
	free(c->reqs);
	free(buf);
	return good;
}

int main(int argc, char **argv)
{
	struct cache c = {0};
	struct stat st;
	long micro = argc == 3 ? atol(argv[2]) : 0;
	int64_t groups;
	int good;

	if (argc < 2 || argc > 3 || (argc == 3 && (micro < 1 || micro > 1000000))) {
		fprintf(stderr, "usage: kv_prefetch FILE [MICROSECONDS, 1 to 1000000]\n");
		return 2;
	}
	c.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (c.fd < 0 || fstat(c.fd, &st) != 0)
		return !fail(argv[1]);
	groups = st.st_size / ((off_t)LAYERS * BLOCK);
	if (!S_ISREG(st.st_mode) || groups == 0) {
		fprintf(stderr, "kv_prefetch: %s: not a regular file of 4 MiB or more\n", argv[1]);
		return 1;
	}
	c.groups = groups < MOST_GROUPS ? (int)groups : MOST_GROUPS;
	c.layer_bytes = (size_t)c.groups * BLOCK;
	c.kernel = 1e-6 * (double)micro;
	good = prepare(&c);
	close(c.fd);
	return !good;
}
