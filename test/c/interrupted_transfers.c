/* Transfers whose system calls are interrupted, before and after they have moved
 * some bytes, are whole. Nothing interrupts those on local files, so a seccomp
 * filter has a thread of this program answer pread and pwrite of one descriptor. */
#include "t.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { BLOCKS = 16, SIZE = 8192, CALLS = 6 };
static int fd, plain; /* the same file; only calls on fd are answered */
static atomic_int calls[BLOCKS];
static int listener;
static sem_t listening;

/* Of the calls for one block: EINTR, EINTR, half of it, EINTR, EINTR, what the kernel says. */
static void answer(const struct seccomp_notif *n, struct seccomp_notif_resp *r) {
  const __u64 *a = n->data.args;
  int k = calls[a[3] / SIZE % BLOCKS]++;
  *r = (struct seccomp_notif_resp){.id = n->id};
  if (k == 2) {
    void *m = (void *)(uintptr_t)a[1];
    r->val = n->data.nr == SYS_pread64 ? pread(plain, m, SIZE / 2, (off_t)a[3]) : pwrite(plain, m, SIZE / 2, (off_t)a[3]);
  } else if (k < CALLS - 1) {
    r->error = -EINTR;
  } else {
    r->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  }
}

static void *answers(void *arg) { /* until the program ends */
  union { struct seccomp_notif of_this_kernel; char room[512]; } n;
  union { struct seccomp_notif_resp of_this_kernel; char room[512]; } r;
  sem_wait(&listening);
  for (;;) {
    memset(&n, 0, sizeof n), memset(&r, 0, sizeof r);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n)) {
      if (errno == EINTR || errno == ENOENT) continue;
      t_fail(__FILE__, __LINE__, "SECCOMP_IOCTL_NOTIF_RECV: %s", t_errno(errno));
      return arg;
    }
    answer(&n.of_this_kernel, &r.of_this_kernel);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
  }
}

/* Before the first call: all threads of the library inherit the filter. */
static bool watch(void) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)fd, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog p = {sizeof code / sizeof *code, code};
  pthread_t t;
  sem_init(&listening, 0, 0);
  if (pthread_create(&t, NULL, answers, NULL)) return false;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      (listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p)) < 0) {
    t_skip(__FILE__, __LINE__, "seccomp", "seccomp filters that ask a thread: %s", t_errno(errno));
    return false;
  }
  sem_post(&listening);
  return true;
}

/* Request i is on another block than its memory: none is the next one's neighbour. */
static int block(int i) { return BLOCKS - 1 - i; }

enum { SINGLE, SYNC, ASYNC };
static const char *const ways[] = {"single", "sync batch", "async batch"};

static int carry_out(int way, bool write, phxfs_io_req_t *q, int n) {
  switch (way) {
  case SINGLE:
    q->result = write ? phxfs_write(fd, q->device_id, q->buf, q->buf_offset, SIZE, q->f_offset)
                      : phxfs_read(fd, q->device_id, q->buf, q->buf_offset, SIZE, q->f_offset);
    return q->result != SIZE;
  case SYNC: return write ? phxfs_write_batch(q, n) : phxfs_read_batch(q, n);
  default: return phxfs_batch_wait(write ? phxfs_batch_submit_write(q, n) : phxfs_batch_submit_read(q, n));
  }
}

static void transfer(int way, bool write, int device, char *m, int n) {
  static uint32_t seed;
  char file[SIZE], in[96];
  phxfs_io_req_t q[BLOCKS];
  snprintf(in, sizeof in, "%s, %s, %d requests, device %d", ways[way], write ? "write" : "read", n, device);
  seed++;
  for (int i = 0; i < n; i++) {
    off_t at = (off_t)block(i) * SIZE;
    q[i] = (phxfs_io_req_t){fd, device, m, (off_t)i * SIZE, SIZE, at, 0};
    calls[block(i)] = 0;
    t_fill(m + i * SIZE, SIZE, write ? seed : 0, (uint64_t)at);
    t_fill(file, SIZE, write ? 0 : seed, (uint64_t)at);
    CHECK_EQ(pwrite(plain, file, SIZE, at), SIZE, "%s", in);
  }
  CHECK_OK(carry_out(way, write, q, n), 0, "%s", in);
  for (int i = 0; i < n; i++) {
    CHECK_EQ(q[i].result, SIZE, "%s, request %d", in, i);
    CHECK_EQ(calls[block(i)], CALLS, "%s, request %d", in, i);
    CHECK_EQ(pread(plain, file, SIZE, q[i].f_offset), SIZE, "%s", in);
    CHECK_DATA(file, SIZE, seed, (uint64_t)q[i].f_offset, "%s, request %d", in, i);
    CHECK_DATA(m + i * SIZE, SIZE, seed, (uint64_t)q[i].f_offset, "%s, request %d", in, i);
  }
}

static void transfers(void) {
  char *m = t_map(BLOCKS * SIZE);
  void *target;
  t_use_host();
  fd = t_file(BLOCKS * SIZE, 0), plain = t_reopen(fd, O_RDWR);
  if (!watch()) return;
  NEED(!phxfs_open(0) && !phxfs_regmem(0, m, BLOCKS * SIZE, &target), "%s", t_errno(errno));
  for (int way = SINGLE; way <= ASYNC && !t_failed(); way++)
    for (int device = -1; device <= 0; device++)
      for (int write = 0; write <= 1; write++) {
        transfer(way, write, device, m, 1);
        if (way != SINGLE) transfer(way, write, device, m, BLOCKS);
      }
}

static void interrupted_transfers_go_on(void) { RUN_CHILD("transfers", "PHXFS_IO_ENGINE=sync"); }

int main(int argc, char **argv) {
  static const t_case cases[] = {T_CASE(interrupted_transfers_go_on)};
  static const t_case children[] = {T_CASE(transfers), {0}};
  return T_RUN(argc, argv, cases, children);
}
