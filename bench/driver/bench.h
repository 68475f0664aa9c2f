/* bench.h - what the parts of phx_bench share. One process measures one mode of
 * one library, which it loads itself; bench/compare runs many of them. */
#ifndef BENCH_H
#define BENCH_H

#include <phoenix.h>

#include <stdbool.h>
#include <stdint.h>

enum pattern {
  RANDOM,     /* offsets drawn at random, memory in slots of its own */
  SEQUENTIAL, /* contiguous in the file and in memory */
  SCATTERED   /* contiguous in the file, slots of memory in another order */
};

struct options {
  const char *lib, *mode, *file;
  enum pattern pattern;
  size_t size;  /* bytes of a request */
  size_t span;  /* bytes of the file that are used */
  int count;    /* requests of a batch */
  int threads;  /* calling threads of mode threads */
  int live;     /* registrations that stay while mode regmem makes pairs */
  double seconds;   /* time to measure; */
  long iterations;  /* or, > 0, a number of calls */
  long least;       /* calls that are measured at least */
  bool write, direct, registered, sparse, verify, json;
};

/* Fills o, or ends the program with a message. */
void options_parse(struct options *o, int argc, char **argv);

/* The library under test. Functions that a library lacks are NULL. */
struct api {
  __typeof__(&phxfs_open) open;
  __typeof__(&phxfs_close) close;
  __typeof__(&phxfs_regmem) regmem;
  __typeof__(&phxfs_deregmem) deregmem;
  __typeof__(&phxfs_read) read;
  __typeof__(&phxfs_write) write;
  __typeof__(&phxfs_read_batch) read_batch;
  __typeof__(&phxfs_write_batch) write_batch;
  __typeof__(&phxfs_batch_submit_read) submit_read;
  __typeof__(&phxfs_batch_submit_write) submit_write;
  __typeof__(&phxfs_batch_wait) wait;
  __typeof__(&phxfs_io_engine_name) engine_name;
};
void api_load(struct api *a, const char *path);

/* File, memory and requests of one calling thread. */
struct work {
  const struct options *o;
  const struct api *a;
  int fd;
  char *memory;          /* count slots of size bytes */
  void *target;          /* of the registration, where there is one */
  phxfs_io_req_t *reqs;
  int *slot;             /* memory slot of request i */
  uint64_t seed, blocks; /* blocks of size bytes in span */
};
/* Makes the file, if it is missing or too short, and has it in the page cache
 * unless it is read with O_DIRECT. Called once, before any work_open. */
void file_prepare(const struct options *o);
void work_open(struct work *w, const struct options *o, const struct api *a, uint64_t seed);
void work_close(struct work *w);
void work_aim(struct work *w);  /* new offsets for the next batch */
void work_check(struct work *w); /* data of the last batch; ends the program if it is wrong */
void work_poison(struct work *w);

/* Latencies of calls, and what they cost. */
struct samples {
  float *us;
  long n, room;
  double begin_s, begin_cpu_s; /* of the measured part */
  double wall_s, cpu_s;
};
double now_s(void);
void samples_begin(struct samples *s);
void samples_add(struct samples *s, double seconds);
void samples_end(struct samples *s);
/* Is there more to measure, by time or by number? */
bool samples_more(const struct samples *s, const struct options *o);

/* The modes. Each prints through report(). */
void mode_batch(const struct options *o, const struct api *a);
void mode_async(const struct options *o, const struct api *a);
void mode_single(const struct options *o, const struct api *a);
void mode_threads(const struct options *o, const struct api *a);
void mode_regmem(const struct options *o, const struct api *a);
void mode_load(const struct options *o);
void mode_huge(const struct options *o, const struct api *a);

/* ios: requests carried out in the measured part. */
void report(const struct options *o, const struct api *a, struct samples *s, double ios);
/* Threads and resident bytes of this process, now; memory that it shares does
 * not count. */
void process_size(long *threads, long *rss_bytes);
void machine_json(FILE *f); /* "kernel": .., "cpus": .., "machine": .. */
void machine_lines(FILE *f);

/* Prints and exits with 1; skip: with 77. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
