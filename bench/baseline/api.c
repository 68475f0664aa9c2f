/* The part of phoenix.h that the benchmarks use. No call is checked as a
 * library must check it: that favours the yardstick. */
#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>

struct phxfs_batch {
  struct job job;
};

static bool resolve(const phxfs_io_req_t *q, struct transfer *t) {
  char *addr = q->device_id < 0 ? (char *)q->buf + q->buf_offset : region_address(q->device_id, q->buf, q->buf_offset, q->nbytes);
  *t = (struct transfer){.fd = q->fd, .addr = addr, .len = q->nbytes, .offset = q->f_offset};
  return addr != NULL;
}

/* Four allocations and two copies for each batch: the caller's requests are
 * resolved into one array, which is then copied into the job's. */
static phxfs_batch_t *queue(phxfs_io_req_t *reqs, int n, bool write) {
  if (!reqs || n <= 0 || !pool_start()) return NULL;
  struct transfer *resolved = malloc(sizeof *resolved * (size_t)n);
  phxfs_batch_t *b = calloc(1, sizeof *b);
  struct job *j = &b->job;
  j->transfer = malloc(sizeof *j->transfer * (size_t)n);
  j->origin = malloc(sizeof *j->origin * (size_t)n);
  j->reqs = reqs, j->write = write;
  for (int i = 0; i < n; i++) {
    if (resolve(&reqs[i], &resolved[j->n])) j->origin[j->n++] = i;
    else reqs[i].result = -EFAULT, j->failed++;
  }
  memcpy(j->transfer, resolved, sizeof *resolved * (size_t)j->n);
  free(resolved);
  pool_queue(j);
  return b;
}

int phxfs_batch_wait(phxfs_batch_t *b) {
  if (!b) return -EINVAL;
  struct job *j = &b->job;
  pool_wait(j);
  int failed = j->failed;
  for (int i = 0; i < j->n; i++) {
    phxfs_io_req_t *q = &j->reqs[j->origin[i]];
    q->result = j->transfer[i].result;
    failed += q->result != (ssize_t)q->nbytes;
  }
  free(j->transfer), free(j->origin), free(b);
  return failed;
}

phxfs_batch_t *phxfs_batch_submit_read(phxfs_io_req_t *reqs, int n) { return queue(reqs, n, false); }
phxfs_batch_t *phxfs_batch_submit_write(phxfs_io_req_t *reqs, int n) { return queue(reqs, n, true); }
int phxfs_read_batch(phxfs_io_req_t *reqs, int n) { return phxfs_batch_wait(queue(reqs, n, false)); }
int phxfs_write_batch(phxfs_io_req_t *reqs, int n) { return phxfs_batch_wait(queue(reqs, n, true)); }
const char *phxfs_io_engine_name(void) { return pool_engine(); }

static ssize_t single(int fd, int device, void *buf, off_t buf_offset, ssize_t n, off_t offset, bool write) {
  phxfs_io_req_t q = {.fd = fd, .device_id = device, .buf = buf, .buf_offset = buf_offset, .nbytes = (size_t)n, .f_offset = offset};
  struct transfer t;
  return resolve(&q, &t) ? transfer_rest(&t, write, 0) : -1;
}

ssize_t phxfs_read(int fd, int device, void *buf, off_t buf_offset, ssize_t n, off_t offset) {
  return single(fd, device, buf, buf_offset, n, offset, false);
}

ssize_t phxfs_write(int fd, int device, void *buf, off_t buf_offset, ssize_t n, off_t offset) {
  return single(fd, device, buf, buf_offset, n, offset, true);
}
