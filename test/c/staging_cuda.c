/* Host staging with the connectors of GPUs, on stand-ins for libcuda (fake_cuda.c) and for
 * libamdhip64 (fake_hip.c, T_HIP) whose memory only copies reach. */
#include "t.h"
#include "t_data.h"
#include "t_load.h"

#include <sys/stat.h>

typedef unsigned long long devptr;
static struct t_api lib;
static struct {
  int (*init)(unsigned), (*retain)(intptr_t *, int), (*release)(int), (*set)(intptr_t), (*get)(intptr_t *);
  int (*alloc)(devptr *, size_t), (*free)(devptr), (*in)(devptr, const void *, size_t), (*out)(void *, devptr, size_t);
  int (*contexts)(int), (*created)(int), (*reset)(int);
  size_t (*pinned)(void), (*most)(void), (*written)(void);
  void (*copies)(int), (*events)(int);
} cuda;

#define MIB ((size_t)1 << 20)
static char *host; /* 64 MiB of plain memory */

static bool hip; /* has no contexts to give back */

static bool load(void) {
  hip = getenv("T_HIP") != NULL;
  void *h = dlopen(hip ? OUT_PATH "/libamdhip64.so.7" : OUT_PATH "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  host = t_map(64 * MIB);
  CHECK(h != NULL, "the stand-in: %s", h ? "" : dlerror());
  if (!h || !t_load(&lib)) return false;
#define GET(member, name) cuda.member = (__typeof__(cuda.member))t_symbol(h, name)
  GET(init, "cuInit"), GET(retain, "cuDevicePrimaryCtxRetain"), GET(release, "cuDevicePrimaryCtxRelease_v2");
  GET(set, "cuCtxSetCurrent"), GET(get, "cuCtxGetCurrent"), GET(alloc, "cuMemAlloc_v2"), GET(free, "cuMemFree_v2");
  GET(in, "cuMemcpyHtoD_v2"), GET(out, "cuMemcpyDtoH_v2"), GET(contexts, "fake_contexts"), GET(created, "fake_contexts_created");
  GET(pinned, "fake_pinned"), GET(most, "fake_most_pinned");
  GET(reset, "cuDevicePrimaryCtxReset_v2"), GET(written, "fake_lost_written");
  GET(copies, "fake_copies"), GET(events, "fake_events");
  return !t_failed();
}

/* n bytes of a GPU, as an application gets them: in its primary context, current for that long. */
static char *gpu(int device, size_t n) {
  intptr_t context;
  devptr p = 0;
  CHECK_EQ(cuda.init(0), 0, "cuInit");
  CHECK_EQ(cuda.retain(&context, device) + cuda.set(context) + cuda.alloc(&p, n) + cuda.set(0) + cuda.release(device), 0, "%zu bytes of GPU %d", n, device);
  return (char *)(uintptr_t)p;
}
static void check_gpu(const char *p, size_t n, uint32_t seed, off_t first, const char *what) {
  CHECK_EQ(cuda.out(host, (devptr)(uintptr_t)p, n), 0, "%s", what);
  CHECK_DATA(host, n, seed, first, "%s", what);
}

static void child_life(void) {
  void *target = NULL;
  intptr_t context = -1;
  if (!load()) return;
  CHECK_OK(lib.find_dev(0), 0, "GPU 0");
  CHECK_OK(lib.find_dev(1), 1, "GPU 1");
  CHECK_ERR(lib.find_dev(2), -1, ENODEV, "there are two");
  CHECK_ERR(lib.open(2), -1, ENODEV, "there are two");
  CHECK_OK(lib.open(0), 0, "GPU 0");
  CHECK_OK(lib.open(1), 0, "GPU 1");
  CHECK_OK(lib.get_map_mode(0), 2, "staging");
  CHECK_EQ(cuda.created(0) + cuda.created(1), 0, "open creates no context");
  char *a = gpu(0, 32 * MIB), *b = gpu(1, 8 * MIB);
  int before = cuda.created(0);
  CHECK_ERR(lib.regmem(0, host, MIB, &target), -EFAULT, EFAULT, "CPU memory");
  CHECK_ERR(lib.regmem(0, b, MIB, &target), -EFAULT, EFAULT, "another GPU's memory");
  CHECK_ERR(lib.regmem(0, a, 33 * MIB, &target), -EFAULT, EFAULT, "beyond the allocation");
  CHECK_OK(lib.regmem(0, a, 32 * MIB, &target), 0, "GPU 0");
  CHECK(target == a, "target %p, address %p", target, (void *)a);
  CHECK_OK(lib.regmem(0, a, 32 * MIB, &target), 0, "a reference");
  CHECK_OK(lib.regmem(1, b, 8 * MIB, &target), 0, "GPU 1");
  CHECK_EQ(cuda.created(0), before, "regmem creates no context");

  int fd = t_file(32 * MIB, 1), out = t_file(0, 0);
  CHECK_OK(lib.read(fd, 0, a, 0, 32 * MIB, 0), 32 * MIB, "one read");
  check_gpu(a, 32 * MIB, 1, 0, "one read");
  CHECK_OK(lib.read(fd, 0, a + 5, 7, 100, 9), 100, "a small one");
  check_gpu(a + 12, 100, 1, 9, "a small one");
  CHECK_OK(lib.read(fd, 0, a, 0, 32 * MIB, 1), 32 * MIB - 1, "the file ends");
  CHECK_OK(lib.write(out, 1, b, 0, 8 * MIB, 0), 8 * MIB, "zeros");
  phxfs_io_req_t q[64];
  for (int i = 0; i < 64; i++) q[i] = (phxfs_io_req_t){fd, i % 2, i % 2 ? b : a, i * 100000, 99999, i * 100000 + 3, 0};
  CHECK_OK(lib.read_batch(q, 64), 0, "two GPUs in one batch");
  for (int i = 0; i < 64; i++) check_gpu((char *)q[i].buf + i * 100000, 99999, 1, i * 100000 + 3, "two GPUs in one batch");
  for (int i = 0; i < 64; i++) q[i].fd = out, q[i].f_offset = i * 99999;
  CHECK_OK(lib.wait(lib.submit_write(q, 64)), 0, "written");
  for (int i = 0; i < 64; i++) {
    CHECK_EQ(pread(out, host, 99999, i * 99999), 99999, "written %d", i);
    CHECK_DATA(host, 99999, 1, i * 100000 + 3, "written %d", i);
  }
  cuda.get(&context);
  CHECK_EQ(context, 0, "the caller's thread has no context");
  CHECK((hip || (cuda.contexts(0) > 0 && cuda.contexts(1) > 0)) && cuda.pinned() > 0, "in use: %d, %d, %zu", cuda.contexts(0), cuda.contexts(1), cuda.pinned());

  CHECK_OK(lib.deregmem(0, a, 32 * MIB), 0, "a reference");
  CHECK_EQ(cuda.free((devptr)(uintptr_t)a), 0, "freed before deregmem");
  CHECK_ERR(lib.read(fd, 0, a, 0, 4096, 0), -EFAULT, EFAULT, "freed memory");
  CHECK_OK(lib.read(fd, 1, b, 0, 4096, 0), 4096, "the other GPU goes on");
  CHECK_OK(lib.deregmem(0, a, 32 * MIB), 0, "harmless");
  CHECK_OK(lib.close(0), 0, "GPU 0");
  CHECK_EQ(cuda.contexts(0), 0, "the context is given back");
  CHECK_OK(lib.close(1), 0, "GPU 1, with a registration");
  CHECK_EQ((int)cuda.pinned() + cuda.contexts(1), 0, "everything is given back");
  CHECK(cuda.most() <= 2 * 3 * MIB, "PHXFS_STAGING_MB for each of two GPUs, pinned at most: %zu", cuda.most());
  CHECK_OK(lib.open(1), 0, "again");
  CHECK_OK(lib.regmem(1, b, 8 * MIB, &target), 0, "again");
  CHECK_OK(lib.read(fd, 1, b, 0, 8 * MIB, 11), 8 * MIB, "again");
  check_gpu(b, 8 * MIB, 1, 11, "again");
}

/* Memory for one slot, or none. */
static void child_scarce(void) {
  void *target;
  bool none = getenv("T_NONE") != NULL;
  if (!load()) return;
  char *a = gpu(0, 8 * MIB);
  int fd = t_file(8 * MIB, 1);
  CHECK_OK(lib.open(0), 0, "GPU 0");
  CHECK_OK(lib.regmem(0, a, 8 * MIB, &target), 0, "GPU 0");
  phxfs_io_req_t q[8];
  for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, 0, a, (off_t)(i * MIB), MIB, (off_t)(i * MIB), 0};
  CHECK_OK(lib.read_batch(q, 8), none ? 8 : 0, "a batch");
  if (none) {
    CHECK_EQ(q[7].result, -ENOMEM, "no pinned memory");
    CHECK_ERR(lib.read(fd, 0, a, 0, 16, 0), -ENOMEM, ENOMEM, "no pinned memory");
  } else check_gpu(a, 8 * MIB, 1, 0, "through one slot");
  CHECK_OK(lib.close(0), 0, "GPU 0");
}

/* Copies that the driver refuses, or that fail after it has taken them. */
static void child_broken(void) {
  void *target;
  if (!load()) return;
  char *a = gpu(0, 8 * MIB);
  int fd = t_file(8 * MIB, 1);
  CHECK_OK(lib.open(0), 0, "GPU 0");
  CHECK_OK(lib.regmem(0, a, 8 * MIB, &target), 0, "GPU 0");
  phxfs_io_req_t q[8];
  for (int late = 0; late < 2; late++) {
    void (*answer)(int) = late ? cuda.events : cuda.copies;
    answer(719);
    CHECK_ERR(lib.read(fd, 0, a, 0, (ssize_t)MIB, 0), -EIO, EIO, "late: %d", late);
    CHECK_ERR(lib.write(fd, 0, a, 0, (ssize_t)MIB, 0), -EIO, EIO, "late: %d", late);
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, 0, a, (off_t)(i * MIB), MIB, (off_t)(i * MIB), 0};
    CHECK_OK(lib.read_batch(q, 8), 8, "late: %d", late);
    for (int i = 0; i < 8; i++) CHECK_EQ(q[i].result, -EIO, "late: %d, request %d", late, i);
    CHECK_OK(lib.wait(lib.submit_read(q, 8)), 8, "late: %d", late);
    answer(0);
    CHECK_OK(lib.read(fd, 0, a, 0, 8 * MIB, 0), 8 * MIB, "they work again");
    check_gpu(a, 8 * MIB, 1, 0, "they work again");
  }
  CHECK_OK(lib.close(0), 0, "GPU 0");
  CHECK_EQ(cuda.pinned(), 0, "given back");
}

/* cudaDeviceReset, with registrations: what lay in the context is gone, also the library's memory. */
static void child_reset(void) {
  void *target;
  if (!load()) return;
  char *a = gpu(0, 8 * MIB), *b = gpu(1, 8 * MIB);
  int fd = t_file(8 * MIB, 1);
  CHECK_OK(lib.open(0), 0, "GPU 0");
  CHECK_OK(lib.open(1), 0, "GPU 1");
  CHECK_OK(lib.regmem(0, a, 8 * MIB, &target), 0, "GPU 0");
  CHECK_OK(lib.regmem(1, b, 8 * MIB, &target), 0, "GPU 1");
  CHECK_OK(lib.read(fd, 0, a, 0, 8 * MIB, 0), 8 * MIB, "before");
  CHECK_OK(lib.read(fd, 1, b, 0, 8 * MIB, 0), 8 * MIB, "before");
  phxfs_io_req_t q[8];
  for (int turn = 0; turn < 2; turn++) {
    CHECK_EQ(cuda.reset(0), 0, "reset %d", turn);
    CHECK_ERR(lib.read(fd, 0, a, 0, 4096, 0), -EFAULT, EFAULT, "no memory any more");
    CHECK_ERR(lib.write(fd, 0, a, 0, 4096, 0), -EFAULT, EFAULT, "no memory any more");
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, i / 4, i / 4 ? b : a, i * 65536, 65536, i * 65536, 0};
    CHECK_OK(lib.read_batch(q, 8), 4, "GPU 1 goes on");
    for (int i = 0; i < 8; i++) CHECK_EQ(q[i].result, i / 4 ? 65536 : -EFAULT, "request %d", i);
    CHECK_OK(lib.wait(lib.submit_write(q, 4)), 4, "written");
    CHECK_OK(lib.deregmem(0, a, 8 * MIB), 0, "reset %d", turn);
    a = gpu(0, 8 * MIB);
    CHECK_OK(lib.regmem(0, a, 8 * MIB, &target), 0, "other memory");
    CHECK_OK(lib.read(fd, 0, a, 0, 8 * MIB, 0), 8 * MIB, "other memory");
    check_gpu(a, 8 * MIB, 1, 0, "other memory");
    check_gpu(b + 4 * 65536, 4 * 65536, 1, 4 * 65536, "GPU 1");
  }
  CHECK_EQ(cuda.reset(0), 0, "before close");
  CHECK_OK(lib.close(0), 0, "with a registration");
  CHECK_EQ(cuda.contexts(0), 0, "given back");
  CHECK_EQ(cuda.reset(1), 0, "before exit");
  CHECK_EQ(cuda.written(), 0, "bytes of others");
}

/* CUDA does not survive fork: the child says so, and CPU buffers work. */
static void in_the_child(void *arg) {
  int fd = *(int *)arg;
  char b[16], line[512] = "";
  void *target;
  char *a = *(char **)host;
  CHECK_ERR(lib.read(fd, 0, a, 0, 4096, 0), -ENODEV, ENODEV, "the parent's registration");
  CHECK_ERR(lib.regmem(0, a, 2 * T_PAGE, &target), -EINVAL, EINVAL, "overlap");
  CHECK_ERR(lib.open(1), -1, ENODEV, "a device");
  CHECK_OK(lib.read(fd, -1, b, 0, 16, 0), 16, "a CPU buffer");
  CHECK_OK(lib.deregmem(0, a, T_PAGE), 0, "dropped");
  FILE *log = fopen("log", "r");
  bool said = false;
  while (log && fgets(line, sizeof line, log)) said |= strstr(line, "forked after its parent initialised CUDA") != NULL;
  CHECK(said, "the log gives the reason");
}
static void child_fork(void) {
  void *target;
  if (!load()) return;
  int fd = t_file(T_PAGE, 1);
  char *a = *(char **)host = gpu(0, T_PAGE);
  CHECK_OK(lib.open(0), 0, "GPU 0");
  CHECK_OK(lib.regmem(0, a, T_PAGE, &target), 0, "GPU 0");
  CHECK_OK(lib.read(fd, 0, a, 0, (ssize_t)T_PAGE, 0), (ssize_t)T_PAGE, "the parent");
  CHECK_EXIT(t_fork(in_the_child, &fd), 0, "child");
  *(char **)host = a;
  CHECK_OK(lib.read(fd, 0, a, 0, (ssize_t)T_PAGE, 0), (ssize_t)T_PAGE, "the parent, afterwards");
  check_gpu(a, T_PAGE, 1, 0, "the parent, afterwards");
}

static void child_auto(void) {
  bool node = getenv("T_NODE") != NULL;
  if (mkdir("dev", 0700) == 0 && node) close(open("dev/phxfs_dev0", O_CREAT | O_RDWR, 0600));
  if (!load()) return;
  CHECK_OK(lib.open(0), 0, "node: %d", node);
  CHECK_OK(lib.get_map_mode(0), node ? 0 : 2, "node: %d", node);
  CHECK_OK(lib.close(0), 0, "node: %d", node);
  if (node) CHECK_ERR(lib.open(1), -1, ENOENT, "full it stays");
  else CHECK_OK(lib.open(1), 0, "staging it stays");
}

#define HIP "PHXFS_VENDOR=AMD", "PHXFS_MODE=host_staging", "T_HIP=1"
#define CUDA "PHXFS_VENDOR=NVIDIA", "PHXFS_MODE=host_staging"
static void transfers_contexts_and_memory(void) {
  RUN_CHILD("life", CUDA, "PHXFS_STAGING_MB=3");
  RUN_CHILD("life", CUDA, "PHXFS_STAGING_MB=3", "PHXFS_IO_ENGINE=sync", "PHXFS_WORKERS=4");
}
static void transfers_on_hip(void) {
  RUN_CHILD("life", HIP, "PHXFS_STAGING_MB=3");
}
static void little_pinned_memory(void) {
  RUN_CHILD("scarce", HIP, "FAKE_CUDA_HOST_LIMIT=1500000");
  RUN_CHILD("scarce", HIP, "FAKE_CUDA_HOST_LIMIT=1000", "T_NONE=1");
  RUN_CHILD("scarce", CUDA, "FAKE_CUDA_HOST_LIMIT=1500000");
  RUN_CHILD("scarce", CUDA, "FAKE_CUDA_HOST_LIMIT=1000", "T_NONE=1");
}
static void copies_fail(void) {
  RUN_CHILD("broken", CUDA, "PHXFS_STAGING_MB=3");
  RUN_CHILD("broken", HIP, "PHXFS_STAGING_MB=3", "PHXFS_IO_ENGINE=sync");
}
static void the_device_is_reset(void) {
  RUN_CHILD("reset", CUDA, "PHXFS_STAGING_MB=3");
  RUN_CHILD("reset", HIP, "PHXFS_STAGING_MB=3", "PHXFS_IO_ENGINE=sync");
}
static void a_forked_child_gets_the_reason(void) {
#ifdef __SANITIZE_ADDRESS__
  T_SKIP(NULL, "a build with AddressSanitizer is not reset in children");
#endif
  RUN_CHILD("fork", CUDA, "PHXFS_LOG=error", "PHXFS_LOG_FILE=log");
}
static void auto_looks_for_a_node(void) {
  RUN_CHILD("auto", "PHXFS_VENDOR=NVIDIA", "PHXFS_MODE=auto", "PHXFS_DEV_DIR=dev");
  CHECK_EQ(rmdir("dev"), 0, "dev");
  RUN_CHILD("auto", "PHXFS_VENDOR=NVIDIA", "PHXFS_MODE=auto", "PHXFS_DEV_DIR=dev", "T_NODE=1");
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(transfers_contexts_and_memory), T_CASE(transfers_on_hip), T_CASE(little_pinned_memory), T_CASE(copies_fail), T_CASE(the_device_is_reset), T_CASE(a_forked_child_gets_the_reason), T_CASE(auto_looks_for_a_node),
  };
  static const t_case children[] = {{"life", child_life}, {"scarce", child_scarce}, {"broken", child_broken}, {"reset", child_reset}, {"fork", child_fork}, {"auto", child_auto}, {0}};
  return T_RUN(argc, argv, cases, children);
}
