/* Transfers between files and GPU memory: this library, cuFile in compatibility mode, the
 * ceiling of pinned copies, plain reads of the disk. One line each: GB/s, processor seconds
 * per GB. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define SECONDS 0.6
#define MOST_THREADS 16

/* cufile.h, as far as it goes here. */
typedef struct { int err, cu_err; } cufile_error;
typedef struct { int type; union { int fd; void *handle; } handle; const void *ops; } cufile_descr;
static struct {
  cufile_error (*open)(void), (*handle)(void **, cufile_descr *), (*buffer)(const void *, size_t, int);
  ssize_t (*read)(void *, void *, size_t, off_t, off_t), (*write)(void *, const void *, size_t, off_t, off_t);
} cufile;

static size_t file_bytes = 4 * GIB, write_bytes = GIB; /* BENCH_MIB, and a quarter */
static devptr memory; /* file_bytes of GPU 0, registered with both */
static int fds[4];    /* read hot, write hot, read O_DIRECT, write O_DIRECT */
static void *handles[4];
static char *plain; /* for pread */

enum how { PHX, CUFILE, PREAD };
struct job {
  enum how how;
  int file, write, threads;
  size_t size, span;
  pthread_barrier_t *start;
  atomic_size_t *moved;
  atomic_int *stop;
  int index;
};

static ssize_t move(const struct job *j, size_t at) {
  void *gpu = (void *)(uintptr_t)memory;
  switch (j->how) {
  case PHX:
    return (j->write ? phxfs_write : phxfs_read)(fds[j->file], 0, gpu, (off_t)at, (ssize_t)j->size, (off_t)at);
  case CUFILE:
    return j->write ? cufile.write(handles[j->file], gpu, j->size, (off_t)at, (off_t)at)
                    : cufile.read(handles[j->file], gpu, j->size, (off_t)at, (off_t)at);
  default:
    return j->write ? pwrite(fds[j->file], plain + at, j->size, (off_t)at) : pread(fds[j->file], plain + at, j->size, (off_t)at);
  }
}

static void *single(void *arg) {
  struct job *j = arg;
  size_t slots = j->span / j->size, at = slots / (size_t)j->threads * (size_t)j->index;
  if (j->how == CUFILE) cuda_use(0);
  pthread_barrier_wait(j->start);
  for (; !*j->stop; at = (at + 1) % slots) {
    ssize_t n = move(j, at * j->size);
    if (n != (ssize_t)j->size) die("%s of %zu bytes: %zd", j->write ? "write" : "read", j->size, n);
    *j->moved += j->size;
  }
  return NULL;
}

static void line(const char *name, const char *who, size_t bytes, double seconds, double processor) {
  double gb = (double)bytes / 1e9;
  printf("%-44s %-10s %7.2f GB/s %7.4f cpu-s/GB\n", name, who, gb / seconds, processor / gb);
}

static const char *const names[] = {"libphoenix", "cuFile", "pread"};
static const char *label(int file, int write) { return file < 2 ? (write ? "write hot" : "read hot") : write ? "write O_DIRECT" : "read O_DIRECT"; }

static void singles(enum how how, int file, int write, size_t size, int threads) {
  pthread_t t[MOST_THREADS];
  struct job j[MOST_THREADS];
  pthread_barrier_t start;
  atomic_size_t moved = 0;
  atomic_int stop = 0;
  char name[64];
  if ((how == CUFILE && !handles[file]) || size * (size_t)threads > (write ? write_bytes : file_bytes)) return;
  pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; i++) {
    j[i] = (struct job){how, file, write, threads, size, write ? write_bytes : file_bytes, &start, &moved, &stop, i};
    pthread_create(&t[i], NULL, single, &j[i]);
  }
  pthread_barrier_wait(&start);
  double begin = now(), used = cpu();
  while (now() - begin < SECONDS) usleep(2000);
  stop = 1;
  for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
  double took = now() - begin;
  snprintf(name, sizeof name, "%s %zu KiB x %d threads", label(file, write), size / KIB, threads);
  line(name, names[how], moved, took, cpu() - used);
}

static void batches(int file, int write, size_t size, int n, int async) {
  phxfs_io_req_t *q = calloc((size_t)n, sizeof *q);
  size_t span = write ? write_bytes : file_bytes, moved = 0;
  char name[64];
  double begin = now(), used = cpu();
  do {
    for (int i = 0; i < n; i++) {
      size_t at = (size_t)i * size % span;
      q[i] = (phxfs_io_req_t){fds[file], 0, (void *)(uintptr_t)memory, (off_t)at, size, (off_t)at, 0};
    }
    if (async) OK(phxfs_batch_wait((write ? phxfs_batch_submit_write : phxfs_batch_submit_read)(q, n)));
    else OK((write ? phxfs_write_batch : phxfs_read_batch)(q, n));
    moved += (size_t)n * size;
  } while (now() - begin < SECONDS);
  double took = now() - begin;
  snprintf(name, sizeof name, "%s %s of %d x %zu KiB", label(file, write), async ? "async" : "batch", n, size / KIB);
  line(name, names[PHX], moved, took, cpu() - used);
  free(q);
}

/* What the bus gives: copies of pinned memory, nothing else. */
static void ceiling(int out, size_t size) {
  enum { STREAMS = 4 };
  void *stream[STREAMS], *host[STREAMS];
  size_t moved = 0;
  char name[64];
  for (int i = 0; i < STREAMS; i++) OK(cu.stream(&stream[i], 1) || cu.host_alloc(&host[i], size, 1));
  double begin = now(), used = cpu();
  while (now() - begin < SECONDS) {
    for (int k = 0; k < 64; k++, moved += size) {
      devptr at = memory + (devptr)((size_t)k * size % (file_bytes / 2));
      OK(out ? cu.out_async(host[k % STREAMS], at, size, stream[k % STREAMS]) : cu.in_async(at, host[k % STREAMS], size, stream[k % STREAMS]));
    }
    for (int i = 0; i < STREAMS; i++) OK(cu.sync(stream[i]));
  }
  double took = now() - begin;
  snprintf(name, sizeof name, "pinned copies %s GPU, %zu KiB", out ? "from the" : "to the", size / KIB);
  line(name, "ceiling", moved, took, cpu() - used);
}

static void open_cufile(void) {
  void *h = dlopen("libcufile.so.0", RTLD_NOW | RTLD_GLOBAL);
  if (!h) h = dlopen("libcufile.so", RTLD_NOW | RTLD_GLOBAL);
  if (!h) {
    printf("skip cuFile: %s\n", dlerror());
    return;
  }
  cufile.open = (__typeof__(cufile.open))dlsym(h, "cuFileDriverOpen");
  cufile.handle = (__typeof__(cufile.handle))dlsym(h, "cuFileHandleRegister");
  cufile.buffer = (__typeof__(cufile.buffer))dlsym(h, "cuFileBufRegister");
  cufile.read = (__typeof__(cufile.read))dlsym(h, "cuFileRead");
  cufile.write = (__typeof__(cufile.write))dlsym(h, "cuFileWrite");
  if (!cufile.open || !cufile.handle || !cufile.read || !cufile.write) die("libcufile lacks a function");
  cufile_error e = cufile.open();
  if (e.err) printf("cuFileDriverOpen: %d, going on\n", e.err);
  for (int i = 0; i < 4; i++) {
    cufile_descr d = {.type = 1, .handle.fd = fds[i]};
    if ((e = cufile.handle(&handles[i], &d)).err) {
      printf("skip cuFile, %s: handle %d\n", label(i, i % 2), e.err);
      handles[i] = NULL;
    }
  }
}

int cmd_bench(const char *folder) {
  void *target;
  if (getenv("BENCH_MIB")) file_bytes = (size_t)atol(getenv("BENCH_MIB")) * MIB, write_bytes = file_bytes / 4;
  char *in = make_file(folder, "bench-in", file_bytes, 4), *out = make_file(folder, "bench-out", write_bytes, 5);
  const int flags[] = {O_RDONLY, O_RDWR, O_RDONLY | O_DIRECT, O_RDWR | O_DIRECT};
  for (int i = 0; i < 4; i++)
    if ((fds[i] = open(i % 2 ? out : in, flags[i])) < 0) die("open: %s", strerror(errno));
  plain = plain_alloc(file_bytes);
  if (pread(fds[0], plain, write_bytes, 0) != (ssize_t)write_bytes) die("pread");
  OK(phxfs_open(0));
  cuda_use(0);
  memory = gpu_alloc(file_bytes);
  OK(phxfs_regmem(0, (void *)(uintptr_t)memory, file_bytes, &target));
  printf("map mode %d, engine %s\n", phxfs_get_map_mode(0), phxfs_io_engine_name());
  open_cufile();
  ceiling(0, MIB), ceiling(0, 16 * MIB), ceiling(1, MIB);
  static const size_t sizes[] = {64 * KIB, MIB, 16 * MIB};
  static const int threads[] = {1, 4, 16};
  for (int s = 0; s < 3; s++)
    for (int t = 0; t < 3; t++)
      for (enum how h = PHX; h <= CUFILE; h++) singles(h, 0, 0, sizes[s], threads[t]);
  for (enum how h = PHX; h <= CUFILE; h++) singles(h, 0, 0, 256 * MIB, 1), singles(h, 0, 0, GIB, 1);
  batches(0, 0, 64 * KIB, 16384, 0), batches(0, 0, MIB, 4096, 0), batches(0, 0, MIB, 4096, 1), batches(0, 0, 16 * MIB, 64, 0);
  batches(0, 0, 64 * KIB, 32, 0), batches(0, 0, MIB, 16, 0);
  for (int s = 0; s < 3; s++)
    for (int t = 0; t < 3; t++)
      for (enum how h = PHX; h <= CUFILE; h++) singles(h, 1, 1, sizes[s], threads[t]);
  batches(1, 1, MIB, 1024, 0), batches(1, 1, 16 * MIB, 64, 0);
  for (int s = 1; s < 3; s++)
    for (enum how h = PHX; h <= PREAD; h++) singles(h, 2, 0, sizes[s], 1);
  for (enum how h = PHX; h <= PREAD; h++) singles(h, 2, 0, MIB, 16);
  batches(2, 0, MIB, 1024, 0), batches(2, 0, 64 * KIB, 4096, 0);
  for (enum how h = PHX; h <= PREAD; h++) singles(h, 3, 1, 16 * MIB, 1);
  double before = now();
  OK(phxfs_close(0));
  printf("last close %.1f ms\nok bench\n", (now() - before) * 1e3);
  return 0;
}
