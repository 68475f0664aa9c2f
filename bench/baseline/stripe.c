#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <liburing.h>

ssize_t transfer_rest(const struct transfer *t, bool write, size_t done) {
  while (done < t->len) {
    size_t n = t->len - done < CHUNK ? t->len - done : CHUNK;
    ssize_t r = write ? pwrite(t->fd, t->addr + done, n, t->offset + (off_t)done)
                      : pread(t->fd, t->addr + done, n, t->offset + (off_t)done);
    if (r < 0 && errno == EINTR) continue;
    if (r < 0) return done ? (ssize_t)done : -errno;
    if (r == 0) break;
    done += (size_t)r;
  }
  return (ssize_t)done;
}

void stripe_sync(struct job *j, int first) {
  for (int i = first; i < j->n; i += WORKERS) j->transfer[i].result = transfer_rest(&j->transfer[i], j->write, 0);
}

/* One completion: what a short transfer leaves is moved at once. */
static void reap(struct io_uring *ring, struct job *j) {
  struct io_uring_cqe *cqe;
  int e;
  while ((e = io_uring_wait_cqe(ring, &cqe)) == -EINTR) {}
  if (e) abort(); /* a yardstick: there is no way on from here */
  struct transfer *t = &j->transfer[cqe->user_data];
  t->result = cqe->res;
  io_uring_cqe_seen(ring, cqe);
  if (t->result > 0 && (size_t)t->result < t->len) t->result = transfer_rest(t, j->write, (size_t)t->result);
}

void stripe_ring(struct io_uring *ring, struct job *j, int first) {
  for (int i = first; i < j->n;) {
    int queued = 0;
    for (; i < j->n && queued < DEPTH; i += WORKERS, queued++) {
      struct transfer *t = &j->transfer[i];
      struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
      unsigned len = (unsigned)(t->len < CHUNK ? t->len : CHUNK);
      if (j->write) io_uring_prep_write(sqe, t->fd, t->addr, len, (uint64_t)t->offset);
      else io_uring_prep_read(sqe, t->fd, t->addr, len, (uint64_t)t->offset);
      sqe->user_data = (uint64_t)i;
    }
    for (int sent = 0; sent < queued;) {
      int r = io_uring_submit(ring);
      if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY) abort();
      if (r > 0) sent += r;
    }
    for (; queued; queued--) reap(ring, j);
  }
}
