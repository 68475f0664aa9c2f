#include "t.h"
#include "t_barrier.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const char *no(t_barrier *b, const char *why) {
  static char text[160];
  snprintf(text, sizeof text, "userfaultfd for the kernel's own faults (root or vm.unprivileged_userfaultfd=1): %s: %s",
           why, t_errno(errno));
  if (b->fd >= 0) close(b->fd);
  b->fd = -1;
  return text;
}

const char *t_barrier_arm(t_barrier *b, void *page, size_t len) {
  char *host = t_host(page);
  int drop = host == page ? MADV_DONTNEED : MADV_REMOVE; /* private memory; a device's, which is shared */
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register reg = {.range = {(uintptr_t)host, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  *b = (t_barrier){.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), .page = host, .len = len};
  if (b->fd < 0) return no(b, "userfaultfd");
  if (ioctl(b->fd, UFFDIO_API, &api)) return no(b, "UFFDIO_API");
  if (ioctl(b->fd, UFFDIO_REGISTER, &reg)) return no(b, "UFFDIO_REGISTER");
  if (madvise(host, len, drop)) return no(b, "madvise");
  return NULL;
}

bool t_barrier_reached(t_barrier *b) {
  struct uffd_msg m;
  struct pollfd p = {.fd = b->fd, .events = POLLIN};
  while (poll(&p, 1, T_WAIT_SECONDS * 1000) > 0)
    if (read(b->fd, &m, sizeof m) == sizeof m) return m.event == UFFD_EVENT_PAGEFAULT;
  return false;
}

void t_barrier_release(t_barrier *b) {
  struct uffdio_range all = {(uintptr_t)b->page, b->len};
  if (b->fd < 0) return;
  ioctl(b->fd, UFFDIO_UNREGISTER, &all); /* wakes whoever stands there */
  close(b->fd);
  b->fd = -1;
}
