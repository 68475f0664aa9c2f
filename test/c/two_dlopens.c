/* Loading twice is loading once; closing unloads nothing. */
#include "t_load.h"

#include <limits.h>

static void child_twice(void) {
  struct t_api a, b;
  char buf[4096];
  int fd = t_file(4096, 1);
  t_use_host();
  if (!t_load(&a)) return;
  CHECK_OK(a.open(0), 0, "first load");
  phxfs_io_req_t q = {fd, -1, buf, 0, 4096, 0, 0};
  CHECK_OK(a.read_batch(&q, 1), 0, "first load");
  int tasks = t_tasks();
  if (!t_load(&b)) return;
  CHECK(b.handle == a.handle && b.open == a.open, "a second copy of the library");
  CHECK_OK(b.open(0), 0, "the same count");
  CHECK_OK(a.close(0), 0, "one of two");
  CHECK_OK(b.close(0), 0, "two of two");
  CHECK_ERR(a.close(0), -1, ENODEV, "none is left");
  CHECK(t_tasks() <= tasks + 2, "threads: %d, were %d", t_tasks(), tasks);
  /* By its SONAME, as another library's DT_NEEDED would ask for it. */
  void *c = dlopen("libphoenix.so", RTLD_NOW | RTLD_NOLOAD);
  CHECK(c == a.handle, "by SONAME: %p want %p", c, a.handle);
}

static void child_close(void) {
  struct t_api a;
  t_use_host();
  for (int round = 0; round < 5; round++) {
    char buf[4096];
    phxfs_io_req_t q = {t_file(4096, 1), -1, buf, 0, 4096, 0, 0};
    if (!t_load(&a)) return;
    CHECK_OK(a.read_batch(&q, 1), 0, "round %d", round);
    phxfs_batch_t *h = a.submit_read(&q, 1);
    CHECK_EQ(dlclose(a.handle), 0, "round %d", round);
    CHECK_OK(a.wait(h), 0, "after dlclose, round %d", round);
    CHECK_OK(a.open(0), 0, "after dlclose, round %d", round);
    CHECK_OK(a.close(0), 0, "after dlclose, round %d", round);
  }
  int tasks = t_tasks();
  CHECK(tasks < 60, "threads after 5 loads: %d", tasks);
}

static void child_close_unused(void) { /* nothing has started yet */
  struct t_api a;
  for (int round = 0; round < 5; round++) {
    if (!t_load(&a)) return;
    CHECK_EQ(dlclose(a.handle), 0, "round %d", round);
  }
  t_use_host();
  CHECK_OK(a.open(0), 0, "first call after five loads and dlcloses");
}

static struct t_api racing;
static pthread_barrier_t start;
static void *load_and_call(void *arg) {
  struct t_api a;
  (void)arg;
  pthread_barrier_wait(&start);
  if (!t_load(&a)) return NULL;
  CHECK_EQ(a.find_dev(4), 4, "the first calls race");
  CHECK(a.open == racing.open || !racing.open, "one library");
  return NULL;
}
static void child_race(void) {
  pthread_t t[16];
  t_use_host();
  pthread_barrier_init(&start, NULL, 16);
  for (int i = 0; i < 16; i++) pthread_create(&t[i], NULL, load_and_call, NULL);
  for (int i = 0; i < 16; i++) pthread_join(t[i], NULL);
}

static void the_second_load_is_the_first(void) { RUN_CHILD("twice", NULL); }
static void dlclose_unloads_nothing(void) { RUN_CHILD("close", NULL); }
static void dlclose_before_the_first_call(void) { RUN_CHILD("close_unused", NULL); }
static void sixteen_threads_load_and_call_at_once(void) {
  for (int i = 0; i < 10; i++) RUN_CHILD("race", NULL);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(the_second_load_is_the_first), T_CASE(dlclose_unloads_nothing), T_CASE(dlclose_before_the_first_call),
    T_CASE(sixteen_threads_load_and_call_at_once),
  };
  static const t_case children[] = {
    {"twice", child_twice}, {"close", child_close}, {"close_unused", child_close_unused}, {"race", child_race}, {0}};
  return T_RUN(argc, argv, cases, children);
}
