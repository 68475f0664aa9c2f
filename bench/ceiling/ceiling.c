/* The ceiling: the calling thread, one ring, nothing else. No lock, no queue,
 * no check, no registration: one thread may call it, with CPU memory. */
#define _GNU_SOURCE
#include <phoenix.h>

#include <liburing.h>
#include <stdbool.h>

enum { DEPTH = 1024 };

static struct io_uring ring;

static bool made(void) {
  static bool done;
  if (!done && io_uring_queue_init(DEPTH, &ring, 0)) abort();
  return done = true;
}

static int batch(phxfs_io_req_t *reqs, int n, bool write) {
  int failed = 0;
  made();
  for (int i = 0; i < n;) {
    unsigned queued = 0;
    for (; i < n && queued < DEPTH; i++, queued++) {
      struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
      char *p = (char *)reqs[i].buf + reqs[i].buf_offset;
      if (write) io_uring_prep_write(sqe, reqs[i].fd, p, (unsigned)reqs[i].nbytes, (uint64_t)reqs[i].f_offset);
      else io_uring_prep_read(sqe, reqs[i].fd, p, (unsigned)reqs[i].nbytes, (uint64_t)reqs[i].f_offset);
      sqe->user_data = (uint64_t)i;
    }
    if (io_uring_submit_and_wait(&ring, queued) != (int)queued) abort();
    for (; queued; queued--) {
      struct io_uring_cqe *cqe;
      if (io_uring_wait_cqe(&ring, &cqe)) abort();
      reqs[cqe->user_data].result = cqe->res;
      failed += cqe->res < 0 || (size_t)cqe->res != reqs[cqe->user_data].nbytes;
      io_uring_cqe_seen(&ring, cqe);
    }
  }
  return failed;
}

int phxfs_read_batch(phxfs_io_req_t *reqs, int n) { return batch(reqs, n, false); }
int phxfs_write_batch(phxfs_io_req_t *reqs, int n) { return batch(reqs, n, true); }
const char *phxfs_io_engine_name(void) { return made() ? "io_uring" : ""; }
