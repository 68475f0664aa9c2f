/* What loading the library costs the process, and what its first batches do. */
#include "bench.h"

#include <time.h>

static long after(long before, long now) { return now > before ? now - before : 0; }

void mode_load(const struct options *o) {
  struct api a;
  struct work w;
  struct options two = *o;
  long t0, t1, t2, r0, r1, r2;
  file_prepare(o);
  process_size(&t0, &r0);
  double began = now_s();
  api_load(&a, o->lib);
  double loaded = now_s();
  struct timespec rest = {0, 50 * 1000 * 1000}; /* threads that come by themselves would be here by then */
  nanosleep(&rest, NULL);
  process_size(&t1, &r1);
  if (!a.read_batch) skip("the library has no batches");
  two.count = o->count > 64 ? o->count : 64; /* enough for helpers to start */
  work_open(&w, &two, &a, 1);
  long t, with_memory, r;
  process_size(&t, &with_memory);
  r = with_memory - r1;
  double call = now_s();
  work_aim(&w);
  if (a.read_batch(w.reqs, two.count)) fail("batch: %m");
  double first = now_s() - call;
  for (int i = 0; i < 100; i++) work_aim(&w), (void)a.read_batch(w.reqs, two.count);
  process_size(&t2, &r2);
  printf("{\"mode\": \"load\", \"lib\": \"%s\", \"load_us\": %.0f, \"first_batch_us\": %.0f, "
         "\"threads_loaded\": %ld, \"rss_loaded_kib\": %ld, \"threads_used\": %ld, \"rss_used_kib\": %ld, ",
         o->lib, (loaded - began) * 1e6, first * 1e6, t1 - t0, after(r0, r1) >> 10, t2 - t0, after(r0 + r, r2) >> 10);
  machine_json(stdout);
  printf("}\n");
  work_close(&w);
}
