/* gpu.h - what the GPU programs share: the CUDA driver by dlopen, the library by
 * linking, clocks and threads. */
#ifndef PHX_GPU_H
#define PHX_GPU_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <phoenix.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

typedef unsigned long long devptr;
struct cuda {
  int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*address)(char *, int, int);
  int (*retain)(void **, int), (*set)(void *), (*get_current)(void **);
  int (*alloc)(devptr *, size_t), (*free)(devptr), (*attribute)(void *, int, devptr), (*fill)(devptr, unsigned char, size_t);
  int (*host_alloc)(void **, size_t, unsigned), (*in)(devptr, const void *, size_t), (*out)(void *, devptr, size_t);
  int (*stream)(void **, unsigned), (*sync)(void *), (*in_async)(devptr, const void *, size_t, void *), (*out_async)(void *, devptr, size_t, void *);
};
extern struct cuda cu;

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define OK(call)                                                              \
  do {                                                                        \
    long code_ = (long)(call);                                                \
    if (code_) die("%s:%d: %s: %ld (%s)", __FILE__, __LINE__, #call, code_, strerror(errno)); \
  } while (0)

void cuda_load(void);         /* every function, cuInit */
void cuda_use(int ordinal);   /* the primary context, current on this thread */
devptr gpu_alloc(size_t n);
char *plain_alloc(size_t n);  /* page-aligned memory of the process, touched */
double now(void);             /* seconds */
double cpu(void);             /* seconds of processor time of this process */
uint64_t rnd(uint64_t *state);
void fill(void *to, size_t n, uint64_t seed);
/* A file of n random bytes (fill's, of seed) in folder, and its path. */
char *make_file(const char *folder, const char *name, size_t n, uint64_t seed);

int cmd_list(void), cmd_find(const char *sysfs), cmd_memory(const char *folder), cmd_check(const char *folder, long operations), cmd_bench(const char *folder);

#endif
