/* call_budget.h - the most that one call may cost in steady state, with one
 * helper thread (PHXFS_WORKERS=1). 4 KiB reads from the page cache. A change
 * that needs more says so by changing this file. call_budget.c measures. */
#ifndef CALL_BUDGET_H
#define CALL_BUDGET_H

/* A busy machine wakes Go's scheduler in every call that takes so long. */
enum { UNJUDGED = 1 << 30 };

enum call { READ, READ_REGISTERED, BATCH, ASYNC };

struct budget {
  const char *name;
  enum call call;
  int n; /* requests */
  /* Of the lowest tenth of many calls (t_count_low): */
  int io;    /* system calls that move data */
  int wakes; /* futex wakes */
  int other; /* other system calls, but for futex waits */
  int entries; /* from C into Go, exactly; allocations: none */
};

struct engine_budget {
  const char *engine;
  const struct budget *budget;
  int rows;
};

static const struct budget io_uring_rows[] = {
  {"phxfs_read, CPU memory", READ, 1, 1, 0, 0, 0},
  {"phxfs_read, registered", READ_REGISTERED, 1, 1, 0, 0, 1},
  {"batch of 1", BATCH, 1, 1, 0, 0, 1},
  {"batch of 32", BATCH, 32, 8, 1, 2, 1}, /* others: what kind of file it is (files.go) */
  {"batch of 1024", BATCH, 1024, 24, UNJUDGED, 2, 1},
  {"async of 1", ASYNC, 1, 1, 1, 0, 2},
  {"async of 32", ASYNC, 32, 8, 1, 4, 2}, /* others: the helper and who waits may both ask, at the same moment */
  {"async of 1024", ASYNC, 1024, 24, UNJUDGED, 4, 2},
};

static const struct budget sync_rows[] = {
  {"phxfs_read, CPU memory", READ, 1, 1, 0, 0, 0},
  {"phxfs_read, registered", READ_REGISTERED, 1, 1, 0, 0, 1},
  {"batch of 1", BATCH, 1, 1, 0, 0, 1},
  {"batch of 32", BATCH, 32, 32, 1, 1, 1}, /* others: whether the file is O_DIRECT (files.go) */
  {"batch of 1024", BATCH, 1024, 1024, UNJUDGED, 1, 1},
  {"async of 1", ASYNC, 1, 1, 1, 0, 2},
  {"async of 32", ASYNC, 32, 32, 1, 2, 2},
};

#define PHX_BUDGET(name, rows) {name, rows, (int)(sizeof rows / sizeof *rows)}
static const struct engine_budget io_uring_budget = PHX_BUDGET("io_uring", io_uring_rows);
static const struct engine_budget sync_budget = PHX_BUDGET("sync", sync_rows);
#undef PHX_BUDGET

#endif
