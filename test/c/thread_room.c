/* How long Go waits for a thread that cannot be created: cabi/threads.c alone,
 * called as runtime/cgo calls it, on a clock that runs only while it sleeps. */
#include "t.h"

#undef _GNU_SOURCE /* each file of cabi defines it */
#include "../../cabi/threads.c"

static long long now_ns, room_at_ns, asked; /* when there is room for a thread */

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg) {
  (void)t, (void)a, (void)f, (void)arg;
  asked++;
  return now_ns >= room_at_ns ? 0 : EAGAIN;
}
int nanosleep(const struct timespec *t, struct timespec *left) {
  (void)left;
  now_ns += t->tv_sec * 1000000000LL + t->tv_nsec;
  return 0;
}
static struct phx_state state;
struct phx_state *phx_state(void) { return &state; }
void phx_log(struct phx_state *s, int level, const char *format, ...) { (void)s, (void)level, (void)format; }

/* _cgo_try_pthread_create of runtime/cgo/gcc_libinit.c. */
static int go_asks(long long room_ns) {
  now_ns = asked = 0, room_at_ns = room_ns;
  atomic_store(&state.threads, 0);
  for (int tries = 0; tries < 20; tries++) {
    int err = __wrap_pthread_create(NULL, NULL, NULL, NULL);
    if (err != EAGAIN) return err;
    nanosleep(&(struct timespec){.tv_nsec = (tries + 1) * 1000000L}, NULL);
  }
  return EAGAIN;
}

static void room_for_all(void) {
  CHECK_EQ(go_asks(0), 0, "a thread");
  CHECK_EQ(asked, 1, "tries");
  CHECK_EQ(now_ns, 0, "waited");
  CHECK_EQ(atomic_load(&state.threads), 1, "threads of Go's");
}
static void room_after_a_while(void) {
  static const long long after[] = {1, 1000000, 999999999, 9900000000};
  for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
    CHECK_EQ(go_asks(after[i]), 0, "room after %lld ns", after[i]);
    CHECK(now_ns - after[i] <= 40000000, "room after %lld ns, seen after %lld", after[i], now_ns);
  }
}
static void no_room_ends_it_after_ten_seconds(void) {
  CHECK(go_asks(LLONG_MAX) != 0, "no room");
  CHECK_EQ(atomic_load(&state.threads), 0, "threads of Go's");
  CHECK(now_ns >= 10000000000 && now_ns <= 10100000000, "waited %lld ns", now_ns);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(room_for_all), T_CASE(room_after_a_while), T_CASE(no_room_ends_it_after_ten_seconds)};
  return T_RUN(argc, argv, cases, NULL);
}
