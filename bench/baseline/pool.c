#define _GNU_SOURCE
#include "pool.h"

#include <liburing.h>

static struct {
  pthread_mutex_t mu;
  pthread_cond_t work_cv;
  struct job *first, *last; /* FIFO; first is the running one */
  unsigned long turn;       /* jobs that have become first, ever */
  bool started, ok, rings;
  struct io_uring ring[WORKERS];
} pool = {.mu = PTHREAD_MUTEX_INITIALIZER, .work_cv = PTHREAD_COND_INITIALIZER};

static void *worker(void *arg) {
  int me = (int)(intptr_t)arg;
  unsigned long seen = 0; /* turns this worker has taken part in */
  pthread_mutex_lock(&pool.mu);
  for (;;) {
    while (!pool.first || pool.turn == seen) pthread_cond_wait(&pool.work_cv, &pool.mu);
    struct job *j = pool.first;
    seen = pool.turn;
    pthread_mutex_unlock(&pool.mu);
    if (pool.rings) stripe_ring(&pool.ring[me], j, me);
    else stripe_sync(j, me);
    pthread_mutex_lock(&pool.mu);
    if (--j->left) continue;
    pool.first = j->next;
    if (pool.first) {
      pool.turn++;
      pthread_cond_broadcast(&pool.work_cv);
    } else {
      pool.last = NULL;
    }
    j->done = true;
    pthread_cond_signal(&j->done_cv);
  }
  return NULL;
}

static bool rings_made(void) {
  const char *choice = getenv("PHXFS_IO_ENGINE");
  if (choice && !strcmp(choice, "sync")) return false;
  for (int i = 0; i < WORKERS; i++) {
    if (io_uring_queue_init(DEPTH, &pool.ring[i], 0)) return false;
  }
  return true;
}

bool pool_start(void) {
  pthread_mutex_lock(&pool.mu);
  if (!pool.started) {
    pool.started = pool.ok = true;
    pool.rings = rings_made();
    for (int i = 0; i < WORKERS && pool.ok; i++) {
      pthread_t t;
      pool.ok = !pthread_create(&t, NULL, worker, (void *)(intptr_t)i);
    }
  }
  pthread_mutex_unlock(&pool.mu);
  return pool.ok;
}

const char *pool_engine(void) { return pool_start() && pool.rings ? "io_uring" : "sync"; }

void pool_queue(struct job *j) {
  j->left = WORKERS;
  pthread_cond_init(&j->done_cv, NULL);
  pthread_mutex_lock(&pool.mu);
  if (pool.last) {
    pool.last->next = j;
  } else {
    pool.first = j;
    pool.turn++;
    pthread_cond_broadcast(&pool.work_cv);
  }
  pool.last = j;
  pthread_mutex_unlock(&pool.mu);
}

void pool_wait(struct job *j) {
  pthread_mutex_lock(&pool.mu);
  while (!j->done) pthread_cond_wait(&j->done_cv, &pool.mu);
  pthread_mutex_unlock(&pool.mu);
  pthread_cond_destroy(&j->done_cv);
}
