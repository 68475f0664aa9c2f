/* fork_kit.h - what the tests of forked children ask of a child. */
#ifndef FORK_KIT_H
#define FORK_KIT_H

#include "t.h"

#define KIT_DEVICE 2
static char *kit_own; /* 64 KiB for registrations of the child's own */
static int kit_fd;    /* 64 KiB of pattern 1 */

static inline void kit_make(void) {
  t_use_host();
  kit_own = t_map(T_PAGE), kit_fd = t_file(T_PAGE, 1);
}

/* Is a child of this build expected to work? A sanitizer's would need its
 * own runtime put back as well (cabi/image.c). */
#ifdef __SANITIZE_ADDRESS__
#define NEED_RESET() T_SKIP(NULL, "a build with AddressSanitizer is not reset in children")
#else
#define NEED_RESET() ((void)0)
#endif

static inline void kit_cpu_buffers(const char *who) {
  char b[4096];
  int out = t_file(0, 0);
  CHECK_OK(phxfs_read(kit_fd, -1, b, 0, 4096, 55), 4096, "%s", who);
  CHECK_DATA(b, 4096, 1, 55, "%s", who);
  CHECK_OK(phxfs_write(out, -1, b, 0, 4096, 0), 4096, "%s", who);
  CHECK_OK(phxfs_read(kit_fd, -1, b, 0, 4096, 65000), 536, "%s, short", who);
  CHECK_ERR(phxfs_read(-1, -1, b, 0, 16, 0), -EBADF, EBADF, "%s", who);
  CHECK_ERR(phxfs_read(kit_fd, -1, b, 0, -1, 0), -EINVAL, EINVAL, "%s", who);
  close(out);
}

/* Every call, as in a process of its own. */
static inline void kit_works(const char *who) {
  void *target;
  char got[4096], back[4096];
  CHECK_OK(phxfs_open(KIT_DEVICE), 0, "%s", who);
  CHECK_OK(phxfs_regmem(KIT_DEVICE, kit_own, T_PAGE, &target), 0, "%s", who);
  CHECK(target == t_host(kit_own), "%s: target", who);
  CHECK_OK(phxfs_read(kit_fd, KIT_DEVICE, kit_own, 0, 4096, 100), 4096, "%s", who);
  CHECK_DATA(kit_own, 4096, 1, 100, "%s", who);
  phxfs_io_req_t q[3] = {{kit_fd, KIT_DEVICE, kit_own, 8192, 4096, 0, 0}, {kit_fd, -1, got, 0, 4096, 777, 0}, {-1, -1, got, 0, 1, 0, 0}};
  CHECK_OK(phxfs_read_batch(q, 2), 0, "%s", who);
  CHECK_DATA(got, 4096, 1, 777, "%s", who);
  phxfs_batch_t *h = phxfs_batch_submit_read(q, 3);
  CHECK_OK(phxfs_batch_wait(h), 1, "%s", who);
  CHECK_DATA(kit_own + 8192, 4096, 1, 0, "%s", who);
  CHECK_ERR(phxfs_batch_wait(h), -EINVAL, EINVAL, "%s, waited", who);
  CHECK_ERR(phxfs_batch_destroy(h), -EINVAL, EINVAL, "%s, waited", who);
  phxfs_io_req_t w = {t_file(0, 0), KIT_DEVICE, kit_own, 8192, 4096, 0, 0};
  CHECK_OK(phxfs_write_batch(&w, 1), 0, "%s", who);
  CHECK_OK(phxfs_read(w.fd, -1, back, 0, 4096, 0), 4096, "%s", who);
  CHECK_DATA(back, 4096, 1, 0, "%s", who);
  close(w.fd);
  CHECK_OK(phxfs_find_dev(3), 3, "%s", who);
  CHECK_OK(phxfs_io_engine_name() != NULL, 1, "%s", who);
  CHECK_OK(phxfs_deregmem(KIT_DEVICE, kit_own, T_PAGE), 0, "%s", who);
  CHECK_OK(phxfs_close(KIT_DEVICE), 0, "%s", who);
  kit_cpu_buffers(who);
}

/* Every call says ENOSYS at once, but for single transfers on CPU buffers. */
static inline void kit_is_refused(const char *who, phxfs_batch_t *parents) {
  void *target = (void *)0x5a;
  int tasks = t_tasks();
  phxfs_io_req_t q = {kit_fd, -1, kit_own, 0, 16, 0, 111};
  for (int i = 0; i < 3; i++) {
    CHECK_ERR(phxfs_open(1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_find_dev(0), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_regmem(0, kit_own, T_PAGE, &target), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_deregmem(0, kit_own, T_PAGE), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_read(kit_fd, 0, kit_own, 0, 16, 0), -ENOSYS, ENOSYS, "%s, device", who);
    CHECK_ERR(phxfs_write(kit_fd, 0, kit_own, 0, 16, 0), -ENOSYS, ENOSYS, "%s, device", who);
    CHECK_ERR(phxfs_read_batch(&q, 1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_ERR(phxfs_write_batch(&q, 1), -ENOSYS, ENOSYS, "%s", who);
    CHECK_NULL(phxfs_batch_submit_read(&q, 1), ENOSYS, "%s", who);
    CHECK_NULL(phxfs_batch_submit_write(&q, 1), ENOSYS, "%s", who);
    CHECK_ERR(phxfs_batch_wait(parents), -ENOSYS, ENOSYS, "%s, the parent's handle", who);
    CHECK_ERR(phxfs_batch_destroy(parents), -ENOSYS, ENOSYS, "%s, the parent's handle", who);
    CHECK_NULL(phxfs_io_engine_name(), ENOSYS, "%s", who);
    CHECK_ERR(phxfs_close(0), -ENOSYS, ENOSYS, "%s", who);
    kit_cpu_buffers(who);
  }
  CHECK_EQ((intptr_t)target, 0x5a, "*target_addr, %s", who);
  CHECK_EQ(q.result, 111, "no result is written, %s", who);
  CHECK_EQ(t_tasks(), tasks, "%s has started no thread", who);
}

#endif
