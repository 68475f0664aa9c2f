// stress.h - a parent that never rests forks children that use the library.
#ifndef STRESS_H
#define STRESS_H

#include <phoenix.h>

#include <sys/types.h>

#include <atomic>
#include <cstdint>

enum { BLOCK = 4096, BLOCKS = 32, PAGE = 65536, DEADLINE_S = 20, DEPTH = 5, DEVICE = 0 };

// A child's random numbers come from its number, so that a run can be repeated.
struct Random {
  uint64_t x;
  explicit Random(uint64_t seed) : x(seed * 0x9E3779B97F4A7C15ull + 1) {}
  unsigned below(unsigned n) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (unsigned)(x >> 33) % n;
  }
};

// Set before the first fork.
struct Config {
  long forks = 100;
  int forkers = 3;          // threads that fork, main among them
  const char *churn = "samptxr"; // churn.cc
  uint64_t seed = 1;
  const char *misses = "."; // folder for what is captured
  const char *plug = nullptr;
  bool may_exit = true;     // exit() in children; not beside dlopen (README)
};
extern Config config;

struct Totals { // in shared memory: children count, too
  std::atomic<long> forks, processes, users, misses, slow, crashes, wrong, refused;
};
extern Totals *totals;
extern std::atomic<bool> over; // the churn ends

// work.cc. They return false and say so on stderr when a result is wrong.
bool make_data();                 // the file, the parent's device and registration
bool use_batches();               // CPU buffers: sync, async, handles, single
bool use_device();                // the registration that the process has, or has borrowed
bool use_own();                   // drops the borrowed one, makes one of its own
bool wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

// churn.cc
void start_churn();

// child.cc: what child `number` does, at this depth; does not return.
void child(uint64_t number, int depth) __attribute__((noreturn));
bool is_killed(uint64_t number, int depth); // that child is to be killed by its parent
int run_echo();                             // what an exec'd child is

// reap.cc: forks, waits until the deadline, captures a miss, counts.
bool fork_and_reap(uint64_t number, int depth);

#endif
