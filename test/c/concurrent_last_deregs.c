/* Threads that give the same registration back at once: as many succeed as
 * there were references, the others get -1 and ENOENT; readers see either the
 * whole registration or none. */
#include "t.h"

enum { THREADS = 4, ROUNDS = 1500 };
static char *m;
static int fd; /* 64 KiB of pattern 1 */
static pthread_barrier_t start, stop;
static atomic_int won, lost, other;
static atomic_bool over;

static void *give_back(void *arg) {
  (void)arg;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(&start);
    errno = 0;
    int r = phxfs_deregmem(0, m, T_PAGE);
    atomic_fetch_add(r == 0 ? &won : r == -1 && errno == ENOENT ? &lost : &other, 1);
    pthread_barrier_wait(&stop);
  }
  return NULL;
}

static void *read_meanwhile(void *arg) {
  char *to = arg;
  for (long i = 0; !over; i++) {
    errno = 0;
    ssize_t r = phxfs_read(fd, 0, to, 0, 4096, i % 60000);
    if (!(r == 4096 || (r == -1 && errno == EFAULT))) {
      t_fail(__FILE__, __LINE__, "read during deregs: got %zd %s want 4096, or -1 EFAULT (14)", r, t_errno(errno));
      break;
    }
    phxfs_io_req_t q = {fd, 0, to, 4096, 4096, 0, 0};
    int n = phxfs_read_batch(&q, 1);
    if (!((n == 0 && q.result == 4096) || (n == 1 && q.result == -EFAULT))) {
      t_fail(__FILE__, __LINE__, "batch during deregs: got %d, result %zd", n, q.result);
      break;
    }
  }
  return NULL;
}

static void as_many_succeed_as_there_are_references(int refs, int readers) {
  pthread_t t[THREADS], r[2];
  void *target;
  t_leaks before;
  won = lost = other = 0;
  over = false;
  pthread_barrier_init(&start, NULL, THREADS + 1), pthread_barrier_init(&stop, NULL, THREADS + 1);
  CHECK_OK(phxfs_open(0), 0, "0");
  t_leaks_take(&before);
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, give_back, NULL);
  for (int i = 0; i < readers; i++) pthread_create(&r[i], NULL, read_meanwhile, m + i * 8192);
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < refs; k++) CHECK_OK(phxfs_regmem(0, m, T_PAGE, &target), 0, "round %d", i);
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&stop);
  }
  over = true;
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < readers; i++) pthread_join(r[i], NULL);
  CHECK_EQ(won, ROUNDS * refs, "successes, %d references", refs);
  CHECK_EQ(lost, ROUNDS * (THREADS - refs), "-1 with ENOENT, %d references", refs);
  CHECK_EQ(other, 0, "anything else, %d references", refs);
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENOENT, "afterwards");
  CHECK_NO_LEAKS(&before, 16, 64, "races");
  CHECK_OK(phxfs_close(0), 0, "0");
}

static void one_of_four_wins(void) { as_many_succeed_as_there_are_references(1, 0); }
static void three_of_four_win(void) { as_many_succeed_as_there_are_references(3, 0); }
static void one_of_four_wins_under_readers(void) { as_many_succeed_as_there_are_references(1, 2); }

/* Register against deregister, no step in common: no reference is lost or won. */
static void *come_and_go(void *arg) {
  void *target = NULL;
  (void)arg;
  for (int i = 0; i < 3000; i++) {
    int r = phxfs_regmem(0, m, T_PAGE, &target);
    CHECK_EQ(r, 0, "regmem of an exact duplicate always succeeds, round %d", i);
    if (r) break;
    if (!t_emulated()) CHECK_EQ((intptr_t)target, (intptr_t)m, "round %d", i);
    CHECK_EQ(phxfs_read(fd, 0, m, 0, 64, 0), 64, "with a reference of our own, round %d", i);
    CHECK_EQ(phxfs_deregmem(0, m, T_PAGE), 0, "round %d", i);
    if (t_failed()) break;
  }
  return NULL;
}
static void duplicates_come_and_go(void) {
  pthread_t t[THREADS];
  CHECK_OK(phxfs_open(0), 0, "0");
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, come_and_go, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  CHECK_ERR(phxfs_deregmem(0, m, T_PAGE), -1, ENOENT, "all references are back");
  CHECK_OK(phxfs_close(0), 0, "0");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(one_of_four_wins), T_CASE(three_of_four_win),
                                 T_CASE(one_of_four_wins_under_readers), T_CASE(duplicates_come_and_go)};
  t_use_host();
  m = t_map(T_PAGE), fd = t_file(T_PAGE, 1);
  return T_RUN(argc, argv, cases, NULL);
}
