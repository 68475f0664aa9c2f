#define _GNU_SOURCE
#include "bench.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_s(void) { /* user and system, of all threads */
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

void samples_begin(struct samples *s) {
  if (!s->us) {
    s->room = 1 << 20;
    s->us = malloc(sizeof *s->us * (size_t)s->room);
    if (!s->us) fail("no memory for latencies");
  }
  s->n = 0;
  s->begin_cpu_s = cpu_s();
  s->begin_s = now_s();
}

void samples_add(struct samples *s, double seconds) {
  if (s->n == s->room) {
    s->room *= 2;
    s->us = realloc(s->us, sizeof *s->us * (size_t)s->room);
    if (!s->us) fail("no memory for latencies");
  }
  s->us[s->n++] = (float)(seconds * 1e6);
}

bool samples_more(const struct samples *s, const struct options *o) {
  if (o->iterations) return s->n < o->iterations;
  return s->n < o->least || now_s() < s->begin_s + o->seconds;
}

void samples_end(struct samples *s) {
  s->wall_s = now_s() - s->begin_s;
  s->cpu_s = cpu_s() - s->begin_cpu_s;
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static double at(const struct samples *s, double part) { return s->us[(long)((double)(s->n - 1) * part + 0.5)]; }

void process_size(long *threads, long *rss_bytes) {
  char line[256];
  long kib;
  FILE *f = fopen("/proc/self/status", "re");
  *threads = *rss_bytes = 0;
  while (f && fgets(line, sizeof line, f)) {
    sscanf(line, "Threads: %ld", threads);
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) *rss_bytes += kib << 10;
    if (sscanf(line, "RssShmem: %ld", &kib) == 1) *rss_bytes -= kib << 10;
  }
  if (f) fclose(f);
}

static void machine(char *model, size_t len, int *cpus, struct utsname *u) {
  cpu_set_t set;
  FILE *f = fopen("/proc/cpuinfo", "re");
  char line[256];
  snprintf(model, len, "unknown");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "model name", 10)) snprintf(model, len, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\"\\\n"), strchr(line, ':') + 2);
  if (f) fclose(f);
  *cpus = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
  uname(u);
}

void machine_json(FILE *f) {
  char model[200];
  int cpus;
  struct utsname u;
  machine(model, sizeof model, &cpus, &u);
  fprintf(f, "\"machine\": \"%s\", \"cpus\": %d, \"kernel\": \"%s\"", model, cpus, u.release);
}

void machine_lines(FILE *f) {
  char model[200];
  int cpus;
  struct utsname u;
  machine(model, sizeof model, &cpus, &u);
  fprintf(f, "%s, %d CPUs, Linux %s\n", model, cpus, u.release);
}

void report(const struct options *o, const struct api *a, struct samples *s, double ios) {
  static const char *const patterns[] = {"random", "sequential", "scattered"};
  const char *engine = a->engine_name ? a->engine_name() : "?";
  qsort(s->us, (size_t)s->n, sizeof *s->us, by_value);
  double p10 = at(s, 0.10), p50 = at(s, 0.50), p99 = at(s, 0.99), cpu_us = s->cpu_s * 1e6 / ios, iops = ios / s->wall_s;
  if (!o->json) {
    printf("%s %s, %s engine: %d x %zu bytes, %s, %s, %s memory%s\n", o->mode, o->write ? "write" : "read", engine, o->count,
           o->size, patterns[o->pattern], o->direct ? "O_DIRECT" : "page cache", o->registered ? "registered" : "CPU",
           o->verify ? ", verified" : "");
    printf("%ld calls: p10 %.2f us, p50 %.2f us, p99 %.2f us; %.0f IO/s, %.0f MB/s, %.3f us of CPU per I/O\n", s->n, p10, p50,
           p99, iops, iops * (double)o->size / 1e6, cpu_us);
  }
  printf("{\"mode\": \"%s\", \"lib\": \"%s\", \"engine\": \"%s\", \"op\": \"%s\", \"size\": %zu, \"count\": %d, \"pattern\": \"%s\", "
         "\"direct\": %d, \"registered\": %d, \"threads\": %d, \"live\": %d, \"verified\": %d, \"calls\": %ld, \"p10_us\": %.3f, "
         "\"p50_us\": %.3f, \"p99_us\": %.3f, \"iops\": %.1f, \"cpu_us_per_io\": %.4f, ",
         o->mode, o->lib, engine, o->write ? "write" : "read", o->size, o->count, patterns[o->pattern], o->direct, o->registered,
         o->threads, o->live, o->verify, s->n, p10, p50, p99, iops, cpu_us);
  machine_json(stdout);
  printf("}\n");
  free(s->us);
}
