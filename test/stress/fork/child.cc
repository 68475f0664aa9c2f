// child.cc - the children, and how they end.
#include "stress.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

enum First { AT_ONCE, NEW_THREAD, TWO_THREADS, NEVER, FIRSTS };
enum End { UNDERSCORE_EXIT, EXIT, EXEC, KILLED, ENDS };

struct Plan {
  First first;
  End end;
  int grandchildren; // how deep
  bool own, from_thread, throws;
};

static Plan plan(uint64_t number, int depth) {
  Random r(number * 64 + (uint64_t)depth + config.seed * 1000003);
  Plan p;
  unsigned first = r.below(10), deep = r.below(100);
  p.first = first < 4 ? AT_ONCE : first < 6 ? NEW_THREAD : first < 9 ? TWO_THREADS : NEVER;
  p.end = (End)r.below(ENDS);
  if (p.end == EXIT && !config.may_exit) p.end = UNDERSCORE_EXIT;
  p.own = r.below(2), p.from_thread = r.below(4) == 0, p.throws = r.below(2);
  p.grandchildren = deep < 3 ? DEPTH : deep < 15 ? 1 : 0;
  return p;
}

bool is_killed(uint64_t number, int depth) { return plan(number, depth).end == KILLED; }

static void *use(void *) { return (void *)(long)(use_batches() && use_device()); }

static bool in_threads(int n) {
  pthread_t t[2];
  bool ok = true;
  for (int i = 0; i < n; i++)
    if (pthread_create(&t[i], nullptr, use, nullptr)) _exit(3);
  for (int i = 0; i < n; i++) {
    void *v;
    pthread_join(t[i], &v);
    ok = ok && v;
  }
  return ok;
}

struct Descent {
  uint64_t number;
  int depth;
};
static void *descend(void *arg) {
  Descent *d = (Descent *)arg;
  return (void *)(long)fork_and_reap(d->number, d->depth);
}

static bool work(const Plan &p, uint64_t number, int depth, int deepest) {
  bool ok = true;
  switch (p.first) {
    case NEW_THREAD: ok = in_threads(1) && use(nullptr); break;
    case TWO_THREADS: ok = in_threads(2) && use(nullptr); break;
    case AT_ONCE: ok = use(nullptr); break;
    default: break;
  }
  if (p.first != NEVER) totals->users++;
  if (ok && p.own && p.first != NEVER) ok = use_own();
  if (p.throws) try { throw std::runtime_error("x"); } catch (const std::exception &) {}
  if (ok && depth < deepest) {
    Descent d = {number, depth + 1};
    pthread_t t;
    void *v;
    if (p.from_thread && !pthread_create(&t, nullptr, descend, &d))
      pthread_join(t, &v);
    else
      v = descend(&d);
    ok = v && (p.first == NEVER || use(nullptr));
  }
  return ok;
}

static void *use_for_ever(void *) {
  while (use(nullptr)) {
  }
  _exit(4);
}

// How deep the line of this number goes is the plan of its first child.
void child(uint64_t number, int depth) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  over = true;
  totals->processes++;
  Plan p = plan(number, depth);
  int deepest = depth == 0 ? p.grandchildren : plan(number, 0).grandchildren;
  if (!work(p, number, depth, deepest)) _exit(2);
  switch (p.end) {
    case EXIT: exit(0);
    case EXEC: execl("/proc/self/exe", "stress", "--echo", (char *)nullptr); _exit(5);
    case KILLED: { // from the middle of calls; by itself, or by its parent a little later
      pthread_t t;
      pthread_create(&t, nullptr, use_for_ever, nullptr);
      for (int i = 0; i < 20; i++) use_batches();
      kill(getpid(), SIGKILL);
      pause();
      _exit(6);
    }
    default: _exit(0);
  }
}

int run_echo() { return make_data() && use_batches() && use_device() ? 0 : 7; }
