/* Registering and deregistering 64 KiB while --live others of 64 KiB live. */
#include "bench.h"

void mode_regmem(const struct options *o, const struct api *a) {
  enum { UNIT = 65536 };
  size_t len = ((size_t)o->live + 1) * UNIT;
  struct samples s = {0};
  void *target;
  if (!a->regmem || a->open(0)) skip("no device 0: %m");
  char *p = mmap(NULL, len + UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("%zu bytes of memory: %m", len);
  p = (char *)(((uintptr_t)p + UNIT - 1) & ~(uintptr_t)(UNIT - 1));
  for (int i = 0; i < o->live; i++) { /* the middle of the range stays free */
    size_t at = (size_t)(i < o->live / 2 ? i : i + 1) * UNIT;
    if (a->regmem(0, p + at, UNIT, &target)) fail("register number %d: %m", i);
  }
  char *mine = p + (size_t)(o->live / 2) * UNIT;
  for (int warm = 1; warm >= 0; warm--) {
    samples_begin(&s);
    do {
      double t = now_s();
      if (a->regmem(0, mine, UNIT, &target) || a->deregmem(0, mine, UNIT)) fail("register and deregister: %m");
      samples_add(&s, now_s() - t);
    } while (warm ? s.n < 20 : samples_more(&s, o));
  }
  samples_end(&s);
  report(o, a, &s, (double)s.n);
  for (int i = 0; i < o->live; i++)
    if (a->deregmem(0, p + (size_t)(i < o->live / 2 ? i : i + 1) * UNIT, UNIT)) fail("deregister number %d: %m", i);
  if (a->close(0)) fail("close: %m");
}
