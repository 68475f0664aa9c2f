/* One thread that calls: batches, asynchronous batches, single transfers. */
#include "bench.h"

/* A call counts only if it moved everything. */
static void whole(int failed, const char *what) {
  if (failed) fail("%s: %d (%m)", what, failed);
}

static double batch(struct work *w) {
  double t = now_s();
  int r = (w->o->write ? w->a->write_batch : w->a->read_batch)(w->reqs, w->o->count);
  t = now_s() - t;
  whole(r, "batch");
  return t;
}

static double async(struct work *w) {
  double t = now_s(), submitted;
  phxfs_batch_t *h = (w->o->write ? w->a->submit_write : w->a->submit_read)(w->reqs, w->o->count);
  submitted = now_s();
  if (!h) fail("submit: %m");
  whole(w->a->wait(h), "wait");
  return (w->o->mode[0] == 's' ? submitted : now_s()) - t;
}

static double single(struct work *w) {
  const phxfs_io_req_t *q = w->reqs;
  double t = now_s();
  ssize_t r = w->o->write ? w->a->write(q->fd, q->device_id, q->buf, 0, (ssize_t)q->nbytes, q->f_offset)
                          : w->a->read(q->fd, q->device_id, q->buf, 0, (ssize_t)q->nbytes, q->f_offset);
  t = now_s() - t;
  if (r != (ssize_t)q->nbytes) fail("%zd of %zu bytes moved: %m", r, q->nbytes);
  return t;
}

/* A tenth of the time first, unmeasured: helpers start, pools fill. */
static void measure(const struct options *o, const struct api *a, double (*call)(struct work *)) {
  struct work w;
  struct samples s = {0};
  work_open(&w, o, a, 1);
  double warm = now_s() + o->seconds / 10;
  do {
    work_aim(&w);
    call(&w);
  } while (now_s() < warm);
  samples_begin(&s);
  while (samples_more(&s, o)) {
    work_aim(&w);
    if (o->verify) work_poison(&w);
    samples_add(&s, call(&w));
    if (o->verify) work_check(&w);
  }
  samples_end(&s);
  report(o, a, &s, (double)s.n * o->count);
  work_close(&w);
}

void mode_batch(const struct options *o, const struct api *a) {
  if (!a->read_batch || !a->write_batch) skip("the library has no batches");
  measure(o, a, batch);
}

void mode_async(const struct options *o, const struct api *a) {
  if (!a->submit_read || !a->submit_write || !a->wait) skip("the library has no asynchronous batches");
  measure(o, a, async);
}

void mode_single(const struct options *o, const struct api *a) {
  if (!a->read || !a->write) skip("the library has no single transfers");
  if (o->count != 1) fail("mode single has --count 1");
  measure(o, a, single);
}
