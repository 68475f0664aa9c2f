// main.cc - stress [-n FORKS] [-f FORKERS] [-c CHURN] [-s SEED] [-m FOLDER] [-p PLUG] [-x]
//
// Forks until FORKS children of the parent have been reaped (their own children
// come on top), from FORKERS threads, main among them, while one thread for
// each letter of CHURN runs (churn.cc). -x: children never call exit().
// Prints the totals; exit status 1 if anything was late, crashed or wrong.
#include "stress.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

Config config;
Totals *totals;
std::atomic<bool> over;
static std::atomic<long> next_number;

static void *forker(void *) {
  for (;;) {
    long n = next_number++;
    if (n >= config.forks) return nullptr;
    if (n % 3 == 0 && !use_batches()) abort(); // bound to Go, once and for ever
    fork_and_reap((uint64_t)n, 0);
  }
}

static bool arguments(int argc, char **argv) {
  for (int c; (c = getopt(argc, argv, "n:f:c:s:m:p:x")) != -1;) switch (c) {
      case 'n': config.forks = atol(optarg); break;
      case 'f': config.forkers = atoi(optarg); break;
      case 'c': config.churn = optarg; break;
      case 's': config.seed = strtoull(optarg, nullptr, 10); break;
      case 'm': config.misses = optarg; break;
      case 'p': config.plug = optarg; break;
      case 'x': config.may_exit = false; break;
      default: return false;
    }
  return config.forkers >= 1 && config.forkers <= 64;
}

int main(int argc, char **argv) {
  setenv("PHXFS_VENDOR", "HOST", 1);
  totals = (Totals *)mmap(nullptr, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (argc == 2 && !strcmp(argv[1], "--echo")) return run_echo();
  if (!arguments(argc, argv)) return 2;
  if (!make_data() || !use_batches()) return 1;
  start_churn();
  pthread_t t[64];
  for (int i = 1; i < config.forkers; i++) pthread_create(&t[i], nullptr, forker, nullptr);
  forker(nullptr);
  for (int i = 1; i < config.forkers; i++) pthread_join(t[i], nullptr);
  over = true;
  printf("forks=%ld processes=%ld using=%ld misses=%ld slow=%ld crashes=%ld wrong=%ld refused=%ld seed=%llu\n",
         totals->forks.load(), totals->processes.load(), totals->users.load(), totals->misses.load(),
         totals->slow.load(), totals->crashes.load(), totals->wrong.load(), totals->refused.load(),
         (unsigned long long)config.seed);
  fflush(stdout);
  _exit(totals->misses || totals->slow || totals->crashes || totals->wrong);
}
