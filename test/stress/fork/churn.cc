// churn.cc - what the parent's other threads do while it forks.
#include "stress.h"

#include <dlfcn.h>
#include <link.h>
#include <netdb.h>
#include <pthread.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>

static void must(bool ok) {
  if (!ok) abort(); // in the parent
}

static void *sync_batches(void *) {
  while (!over) must(use_batches() && use_device());
  return nullptr;
}

static void *registrations(void *) {
  static char memory[2 * PAGE];
  char *at = (char *)(((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
  void *target;
  for (int i = 0; !over; i++) {
    must(!phxfs_open(1 + i % 7) && !phxfs_regmem(1 + i % 7, at, PAGE, &target));
    must(!phxfs_deregmem(1 + i % 7, at, PAGE) && !phxfs_close(1 + i % 7));
  }
  return nullptr;
}

static void *allocations(void *) {
  while (!over) {
    void *p[64];
    for (int i = 0; i < 64; i++) p[i] = malloc(100 + (size_t)i * 50);
    for (void *q : p) free(q);
  }
  return nullptr;
}

static void *short_call(void *arg) {
  if (arg) must(phxfs_find_dev(3) == 3); // ends as a thread that Go knows
  return nullptr;
}

static void *threads(void *) {
  for (long i = 0; !over; i++) {
    pthread_t t;
    if (!pthread_create(&t, nullptr, short_call, (void *)(i & 1))) pthread_join(t, nullptr);
  }
  return nullptr;
}

static void *exceptions(void *) {
  while (!over) {
    try {
      throw std::runtime_error("x");
    } catch (const std::exception &e) {
      must(e.what()[0] == 'x');
    }
  }
  return nullptr;
}

static int one(struct dl_phdr_info *, size_t, void *) { return 0; }
static void *phdrs(void *) {
  while (!over) dl_iterate_phdr(one, nullptr);
  return nullptr;
}

static void *loads(void *) {
  while (!over) {
    void *h = dlopen(config.plug, RTLD_NOW);
    must(h);
    int *(*word)() = (int *(*)())dlsym(h, "plug_word"); // in TLS
    ++*word();
    dlclose(h);
  }
  return nullptr;
}

static void *libc_locks(void *) {
  FILE *null = fopen("/dev/null", "we");
  while (!over) {
    char b[100];
    time_t t = time(nullptr);
    struct tm m;
    strftime(b, sizeof b, "%c %Z", localtime_r(&t, &m));
    fprintf(null, "%d %s %f\n", 1, b, 2.5), fflush(null);
    struct addrinfo *found = nullptr, hint = {};
    hint.ai_flags = AI_NUMERICHOST;
    if (!getaddrinfo("127.0.0.1", "80", &hint, &found)) freeaddrinfo(found);
  }
  fclose(null);
  return nullptr;
}

void start_churn() {
  static const struct { char letter; void *(*run)(void *); } kinds[] = {
      {'s', sync_batches}, {'r', registrations}, {'m', allocations}, {'t', threads}, {'x', exceptions},
      {'p', phdrs},        {'d', loads},         {'l', libc_locks}};
  for (const char *c = config.churn; *c; c++)
    for (auto &k : kinds) {
      pthread_t t;
      if (k.letter == *c) must(!pthread_create(&t, nullptr, k.run, nullptr));
    }
}
