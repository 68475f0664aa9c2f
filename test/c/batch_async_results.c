/* When the results of an async batch are written, by whom, and what of the
 * request array is read when. */
#include "t.h"
#include "t_barrier.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char *cpu, *dev; /* 1 MiB each; dev registered on device 0 */
static int fd;          /* 1 MiB of pattern 1 */
static const size_t LEN = 1 << 20;

/* A sync batch has a later ticket: when it returns, all async ones before are complete. */
static void all_earlier_batches_complete(void) {
  char b[16];
  phxfs_io_req_t q = {fd, -1, b, 0, 16, 0, 0};
  CHECK_OK(phxfs_read_batch(&q, 1), 0, "the later sync batch");
}

static void results_come_at_wait(void) {
  enum { N = 300 };
  static phxfs_io_req_t q[N];
  for (int round = 0; round < 20; round++) {
    memset(t_host(dev), 0, LEN), memset(cpu, 0, LEN);
    for (int i = 0; i < N; i++) q[i] = (phxfs_io_req_t){fd, i % 2 - 1, i % 2 ? dev : cpu, i * 3000, 3000, i * 17, 111};
    q[7].f_offset = -1;             /* cannot be resolved */
    q[8].device_id = 5;             /* not open */
    q[9].f_offset = (off_t)LEN - 9; /* short read */
    q[10].fd = -1;
    phxfs_batch_t *h = phxfs_batch_submit_read(q, N);
    NEED(h, "submit: %s", t_errno(errno));
    all_earlier_batches_complete();
    for (int i = 0; i < N; i++)
      CHECK_EQ(q[i].result, i == 7 || i == 8 ? -EFAULT : 111, "I/O is done, nobody has waited: request %d, round %d", i, round);
    CHECK_OK(phxfs_batch_wait(h), 4, "7, 8, 9 and 10 failed, round %d", round);
    for (int i = 0; i < N; i++) {
      CHECK_EQ(q[i].result, i == 7 || i == 8 ? -EFAULT : i == 9 ? 9 : i == 10 ? -EBADF : 3000, "request %d, round %d", i, round);
      if (q[i].result == 3000) CHECK_DATA((char *)q[i].buf + q[i].buf_offset, 3000, 1, (uint64_t)q[i].f_offset, "request %d, round %d", i, round);
    }
    if (t_failed()) return;
  }
}

static void writes_reach_the_file(void) {
  int out = t_file(0, 0);
  t_fill(dev, LEN, 9, 0);
  phxfs_io_req_t q[4];
  for (int i = 0; i < 4; i++) q[i] = (phxfs_io_req_t){out, 0, dev, i * 262144, 262144, i * 262144, 111};
  phxfs_batch_t *h = phxfs_batch_submit_write(q, 4);
  CHECK_OK(phxfs_batch_wait(h), 0, "4 writes");
  memset(cpu, 0, LEN);
  CHECK_EQ(pread(out, cpu, LEN, 0), LEN, "the file");
  CHECK_DATA(cpu, LEN, 9, 0, "the file");
  close(out);
}

/* The array cannot be written from submit to wait: who writes there dies. */
static void nobody_writes_the_array_before_wait(void) {
  phxfs_io_req_t *q = t_map(T_PAGE);
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, -1, cpu, i * 4096, 4096, i * 4096, 111};
    phxfs_batch_t *h = phxfs_batch_submit_read(q, 8);
    NEED(h, "submit: %s", t_errno(errno));
    mprotect(q, T_PAGE, PROT_READ);
    all_earlier_batches_complete();
    mprotect(q, T_PAGE, PROT_READ | PROT_WRITE);
    CHECK_OK(phxfs_batch_wait(h), 0, "round %d", round);
  }
  t_unmap(q, T_PAGE);
}

static void destroy_writes_no_results_and_forgets_the_array(void) {
  for (int round = 0; round < 50; round++) {
    phxfs_io_req_t *q = t_map(T_PAGE);
    for (int i = 0; i < 8; i++) q[i] = (phxfs_io_req_t){fd, 0, dev, i * 4096, 4096, i * 4096, 111};
    q[3].buf = NULL;
    memset(t_host(dev), 0, 8 * 4096);
    phxfs_batch_t *h = phxfs_batch_submit_read(q, 8);
    NEED(h, "submit: %s", t_errno(errno));
    CHECK_OK(phxfs_batch_destroy(h), 0, "round %d", round);
    for (int i = 0; i < 8; i++) {
      CHECK_EQ(q[i].result, i == 3 ? -EFAULT : 111, "request %d after destroy, round %d", i, round);
      if (i != 3) CHECK_DATA(dev + i * 4096, 4096, 1, (uint64_t)i * 4096, "the I/O was done before destroy returned, request %d", i);
    }
    t_unmap(q, T_PAGE); /* a later touch would be a crash */
    all_earlier_batches_complete();
  }
}

/* While an earlier batch stands still, this one cannot have begun: what it does
 * later, it does by what it read at submit. */
static void the_array_is_read_at_submit_only(void) {
  t_barrier b;
  char *stuck = t_map(T_PAGE);
  phxfs_io_req_t first = {fd, -1, stuck, 0, 4096, 0, 0}, q[8], *page = t_map(T_PAGE);
  NEED_BARRIER(&b, stuck, 4096);
  phxfs_batch_t *head = phxfs_batch_submit_read(&first, 1);
  CHECK(head != NULL && t_barrier_reached(&b), "the first batch's I/O has begun");
  memset(t_host(dev), 0, LEN);
  for (int i = 0; i < 8; i++) page[i] = q[i] = (phxfs_io_req_t){fd, 0, dev, i * 4096, 4096, i * 8192, 111};
  phxfs_batch_t *h = phxfs_batch_submit_read(page, 8);
  for (int i = 0; i < 8; i++) page[i] = (phxfs_io_req_t){-1, 99, NULL, -1, 1, -1, 111};
  mprotect(page, T_PAGE, PROT_NONE); /* not even read */
  t_barrier_release(&b);
  CHECK_OK(phxfs_batch_wait(head), 0, "first");
  all_earlier_batches_complete();
  mprotect(page, T_PAGE, PROT_READ | PROT_WRITE);
  CHECK_OK(phxfs_batch_wait(h), 0, "second, its array spoiled after submit");
  for (int i = 0; i < 8; i++) {
    CHECK_EQ(page[i].result, 4096, "request %d", i);
    CHECK_DATA(dev + i * 4096, 4096, 1, (uint64_t)i * 8192, "request %d", i);
  }
  t_unmap(page, T_PAGE), t_unmap(stuck, T_PAGE);
}

static _Atomic int waiter_tid;
static void *wait_for(void *h) {
  waiter_tid = (int)syscall(SYS_gettid);
  CHECK_OK(phxfs_batch_wait(h), 0, "the waiter");
  return NULL;
}

/* Each page of the array is write-protected; the fault says which thread writes. */
static void the_waiter_writes_the_results(void) {
  enum { N = 400 }; /* 5 pages of requests */
  char *pages = t_map(T_PAGE);
  phxfs_io_req_t *q = (phxfs_io_req_t *)pages;
  for (int i = 0; i < N; i++) q[i] = (phxfs_io_req_t){fd, -1, cpu, i * 16, 16, i, 111};
  int u = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  struct uffdio_register reg = {.range = {(uintptr_t)pages, T_PAGE}, .mode = UFFDIO_REGISTER_MODE_WP};
  struct uffdio_writeprotect on = {.range = {(uintptr_t)pages, T_PAGE}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  if (u < 0 || ioctl(u, UFFDIO_API, &api) || ioctl(u, UFFDIO_REGISTER, &reg))
    T_SKIP("userfaultfd", "userfaultfd with write protection and thread ids: %s", t_errno(errno));
  phxfs_batch_t *h = phxfs_batch_submit_read(q, N);
  NEED(h, "submit: %s", t_errno(errno));
  NEED(!ioctl(u, UFFDIO_WRITEPROTECT, &on), "%s", t_errno(errno));
  pthread_t t;
  pthread_create(&t, NULL, wait_for, h);
  int faults = 0;
  for (struct pollfd p = {.fd = u, .events = POLLIN}; faults < 5 && poll(&p, 1, T_WAIT_SECONDS * 1000) > 0;) {
    struct uffd_msg msg;
    if (read(u, &msg, sizeof msg) != sizeof msg) continue;
    CHECK_EQ(msg.arg.pagefault.feat.ptid, waiter_tid, "thread that writes results, page %d", faults);
    struct uffdio_writeprotect off = {.range = {msg.arg.pagefault.address & ~(uint64_t)4095, 4096}};
    ioctl(u, UFFDIO_WRITEPROTECT, &off);
    faults++;
  }
  CHECK_EQ(faults, 5, "pages of results written by wait");
  close(u);
  pthread_join(t, NULL);
  for (int i = 0; i < N; i++) CHECK_EQ(q[i].result, 16, "request %d", i);
  t_unmap(pages, T_PAGE);
}

int main(int argc, char **argv) {
  static const t_case cases[] = {
    T_CASE(results_come_at_wait), T_CASE(writes_reach_the_file), T_CASE(nobody_writes_the_array_before_wait),
    T_CASE(destroy_writes_no_results_and_forgets_the_array), T_CASE(the_array_is_read_at_submit_only),
    T_CASE(the_waiter_writes_the_results),
  };
  void *target;
  t_use_host();
  cpu = t_map(LEN), dev = t_map(LEN), fd = t_file(LEN, 1);
  if (phxfs_open(0) || phxfs_regmem(0, dev, LEN, &target)) return 1;
  return T_RUN(argc, argv, cases, NULL);
}
