/* Many threads that call at once. Latencies are those of all threads together. */
#include "bench.h"

#include <pthread.h>

struct caller {
  const struct options *o;
  const struct api *a;
  struct samples s;
  pthread_barrier_t *start;
  pthread_t thread;
  uint64_t seed;
};

static void *run(void *arg) {
  struct caller *c = arg;
  struct work w;
  work_open(&w, c->o, c->a, c->seed);
  __typeof__(c->a->read_batch) call = c->o->write ? c->a->write_batch : c->a->read_batch;
  for (int i = 0; i < 20; i++) {
    work_aim(&w);
    if (call(w.reqs, c->o->count)) fail("batch: %m");
  }
  pthread_barrier_wait(c->start);
  pthread_barrier_wait(c->start); /* between them the main thread takes the time */
  samples_begin(&c->s);
  while (samples_more(&c->s, c->o)) {
    work_aim(&w);
    if (c->o->verify) work_poison(&w);
    double t = now_s();
    int r = call(w.reqs, c->o->count);
    samples_add(&c->s, now_s() - t);
    if (r) fail("batch: %d (%m)", r);
    if (c->o->verify) work_check(&w);
  }
  pthread_barrier_wait(c->start);
  work_close(&w);
  return NULL;
}

void mode_threads(const struct options *o, const struct api *a) {
  struct caller *c = calloc((size_t)o->threads, sizeof *c);
  struct samples all = {0};
  pthread_barrier_t start;
  long n = 0;
  if (!c || !a->read_batch || !a->write_batch) skip("the library has no batches");
  if (o->write && o->verify) skip("threads write over each other: nothing to verify");
  pthread_barrier_init(&start, NULL, (unsigned)o->threads + 1);
  for (int i = 0; i < o->threads; i++) {
    c[i] = (struct caller){.o = o, .a = a, .start = &start, .seed = (uint64_t)i + 1};
    int e = pthread_create(&c[i].thread, NULL, run, &c[i]);
    if (e) fail("thread %d: %s", i, strerror(e));
  }
  pthread_barrier_wait(&start);
  samples_begin(&all);
  pthread_barrier_wait(&start);
  pthread_barrier_wait(&start);
  samples_end(&all);
  for (int i = 0; i < o->threads; i++) {
    pthread_join(c[i].thread, NULL);
    n += c[i].s.n;
    for (long k = 0; k < c[i].s.n; k++) samples_add(&all, c[i].s.us[k] * 1e-6);
    free(c[i].s.us);
  }
  report(o, a, &all, (double)n * o->count);
  pthread_barrier_destroy(&start);
  free(c);
}
