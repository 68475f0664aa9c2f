/* watched_read.c - see watched_read.h. */
#define _POSIX_C_SOURCE 200809L
#include "watched_read.h"

#include <errno.h>
#include <time.h>

enum {
	STEP = 32 << 20, /* bytes of one batch */
	WINDOW = 16      /* the most asynchronous batches the library queues */
};

struct row {
	phxfs_io_req_t *reqs;
	int n, next, seen; /* requests; of them submitted; of them complete */
	phxfs_batch_t *flight[WINDOW];
	int ends[WINDOW]; /* the first request after that batch */
	int first, count; /* oldest batch in flight, and how many */
	int failed, error;
	double begin, drawn, done, total; /* seconds, seconds, bytes, bytes */
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Draws the line, at most ten times a second. */
static void draw(struct row *w)
{
	double now = seconds(), rate = w->done / (now - w->begin + 1e-9);
	int left = rate > 0 ? (int)((w->total - w->done) / rate + 0.5) : 0; /* seconds */

	if (now - w->drawn < 0.1 && w->done < w->total)
		return;
	w->drawn = now;
	fprintf(stderr, "\r%3.0f %%  %.1f of %.1f MB  %.2f GB/s  ETA %d:%02d   ", 100 * w->done / w->total,
		w->done / 1e6, w->total / 1e6, rate / 1e9, left / 60, left % 60);
}

/* Submits one more batch. Returns 0 if that is not possible now, or ever. */
static int submit(struct row *w)
{
	int slot = (w->first + w->count) % WINDOW, end = w->next;
	size_t bytes = 0;

	while (end < w->n && bytes < STEP)
		bytes += w->reqs[end++].nbytes;
	w->flight[slot] = phxfs_batch_submit_read(w->reqs + w->next, end - w->next);
	if (!w->flight[slot]) {
		if (errno != EBUSY || w->count == 0)
			w->error = errno; /* EBUSY: wait for the oldest, then again */
		return 0;
	}
	w->ends[slot] = w->next = end;
	w->count++;
	return 1;
}

static void wait_oldest(struct row *w)
{
	int failed = phxfs_batch_wait(w->flight[w->first]);

	if (failed < 0)
		w->error = errno;
	else
		w->failed += failed;
	while (w->seen < w->ends[w->first])
		w->done += (double)w->reqs[w->seen++].nbytes;
	w->first = (w->first + 1) % WINDOW;
	w->count--;
	draw(w);
}

int watched_read(phxfs_io_req_t *reqs, int n)
{
	struct row w = {.reqs = reqs, .n = n, .begin = seconds()};
	int i;

	for (i = 0; i < n; i++)
		w.total += (double)reqs[i].nbytes;
	do {
		while (!w.error && w.next < n && w.count < WINDOW && submit(&w))
			;
		if (w.count > 0)
			wait_oldest(&w);
	} while (w.count > 0 || (!w.error && w.next < n)); /* what was submitted must end */
	fputc('\n', stderr);
	errno = w.error;
	return w.error ? -1 : w.failed;
}
