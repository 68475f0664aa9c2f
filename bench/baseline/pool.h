/* pool.h - the yardstick: four threads that carry out batches one at a time.
 * What the C++ library that libphoenix replaces does, in as few lines as that
 * takes: a batch is one job in a FIFO; every thread takes each fourth request
 * of it, submits them to a ring of its own and waits for their completions;
 * the caller sleeps on a condition variable until the last thread is done. */
#ifndef BASELINE_POOL_H
#define BASELINE_POOL_H

#include <phoenix.h>

#include <pthread.h>
#include <stdbool.h>

enum { WORKERS = 4, DEPTH = 1024, CHUNK = 1 << 30 };

/* One transfer, resolved to a host address. */
struct transfer {
  int fd;
  char *addr;
  size_t len;
  off_t offset;
  ssize_t result;
};

struct job {
  struct job *next;          /* in the FIFO */
  struct transfer *transfer; /* n of them */
  int *origin;               /* transfer i is request origin[i] of the caller */
  phxfs_io_req_t *reqs;      /* the caller's */
  int n, failed;             /* failed: requests that could not be resolved */
  bool write;
  int left;                  /* workers that have not finished; under mu */
  bool done;                 /* under mu */
  pthread_cond_t done_cv;
};

/* Starts the workers at the first call; false if they cannot be had. */
bool pool_start(void);
/* Puts the job at the end of the FIFO. */
void pool_queue(struct job *j);
/* Sleeps until the job is done. */
void pool_wait(struct job *j);
const char *pool_engine(void); /* "io_uring" or "sync" */

/* stripe.c: transfers first, first + WORKERS, ... of a job. ring: NULL for pread and pwrite. */
struct io_uring;
void stripe_ring(struct io_uring *ring, struct job *j, int first);
void stripe_sync(struct job *j, int first);
/* Moves the rest of a transfer, of which done bytes have moved. */
ssize_t transfer_rest(const struct transfer *t, bool write, size_t done);

/* regions.c: the registrations. NULL: not inside one. */
char *region_address(int device, const void *buf, off_t buf_offset, size_t n);

#endif
