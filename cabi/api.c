/* api.c - the public functions (include/phoenix.h). Each admits the call,
 * hands it to the Go function behind it and sets errno; what the values mean is
 * decided in Go (cabi/values.go). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>

#include "_cgo_export.h"
#include "single.h"
#include "state.h"

#define API __attribute__((visibility("default")))

static int refused(int err) {
  errno = err;
  return -err;
}

/* Leaves the call; errno is set by failures and kept by everything else. */
static void done(struct phx_call *c, int saved, int err) {
  phx_leave(c);
  errno = err ? err : saved;
}

#define ENTER(name)                                       \
  struct phx_call c;                                      \
  int saved = errno, err = phx_enter(&c, name)

#define LEAVE(r)             \
  do {                       \
    done(&c, saved, (r).r1); \
    return (r).r0;           \
  } while (0)

API int phxfs_open(int device_id) {
  ENTER("phxfs_open");
  if (err) return refused(err);
  struct go_open_return r = go_open(device_id);
  LEAVE(r);
}

API int phxfs_close(int device_id) {
  ENTER("phxfs_close");
  if (err) return refused(err);
  struct go_close_return r = go_close(device_id);
  LEAVE(r);
}

API uint64_t phxfs_get_page_size(void) {
  ENTER("phxfs_get_page_size");
  if (err) { /* a value every vendor's registrations accept: 0 would be divided by */
    errno = err;
    return 65536;
  }
  struct go_page_size_return r = go_page_size();
  LEAVE(r);
}

API int phxfs_find_dev(int device_id) {
  ENTER("phxfs_find_dev");
  if (err) return refused(err);
  struct go_find_dev_return r = go_find_dev(device_id);
  LEAVE(r);
}

API int phxfs_get_map_mode(int device_id) {
  ENTER("phxfs_get_map_mode");
  if (err) return refused(err);
  struct go_map_mode_return r = go_map_mode(device_id);
  LEAVE(r);
}

API int phxfs_regmem(int device_id, const void *addr, size_t len, void **target_addr) {
  ENTER("phxfs_regmem");
  if (err) return refused(err);
  struct go_regmem_return r = go_regmem(device_id, (uintptr_t)addr, len, (uintptr_t *)target_addr);
  LEAVE(r);
}

API int phxfs_deregmem(int device, const void *addr, size_t len) {
  ENTER("phxfs_deregmem");
  if (err) return refused(err);
  struct go_deregmem_return r = go_deregmem(device, (uintptr_t)addr, len);
  LEAVE(r);
}

static ssize_t transfer(const char *name, int write, int fd, int device_id, void *buf,
                        off_t buf_offset, ssize_t nbyte, off_t f_offset) {
  struct phx_call plain;
  if (device_id < 0) {
    int no = phx_enter_plain(&plain);
    if (no) return refused(no);
    ssize_t n = phx_single(plain.s, write, fd, device_id, buf, buf_offset, nbyte, f_offset);
    phx_leave(&plain);
    return n;
  }
  ENTER(name);
  if (err) return refused(err);
  struct go_transfer_return r =
      go_transfer(write, fd, device_id, (uintptr_t)buf, buf_offset, nbyte, f_offset);
  LEAVE(r);
}

API ssize_t phxfs_read(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte,
                       off_t f_offset) {
  return transfer("phxfs_read", 0, fd, device_id, buf, buf_offset, nbyte, f_offset);
}

API ssize_t phxfs_write(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte,
                        off_t f_offset) {
  return transfer("phxfs_write", 1, fd, device_id, buf, buf_offset, nbyte, f_offset);
}

static int batch(const char *name, int write, phxfs_io_req_t *reqs, int n) {
  ENTER(name);
  if (err) return refused(err);
  struct go_batch_return r = go_batch(write, reqs, n);
  LEAVE(r);
}

API int phxfs_read_batch(phxfs_io_req_t *reqs, int n) {
  return batch("phxfs_read_batch", 0, reqs, n);
}

API int phxfs_write_batch(phxfs_io_req_t *reqs, int n) {
  return batch("phxfs_write_batch", 1, reqs, n);
}

static phxfs_batch_t *submit(const char *name, int write, phxfs_io_req_t *reqs, int n) {
  ENTER(name);
  if (err) {
    errno = err;
    return NULL;
  }
  struct go_submit_return r = go_submit(write, reqs, n);
  done(&c, saved, r.r1);
  return (phxfs_batch_t *)(uintptr_t)r.r0; /* an id, never dereferenced */
}

API phxfs_batch_t *phxfs_batch_submit_read(phxfs_io_req_t *reqs, int n) {
  return submit("phxfs_batch_submit_read", 0, reqs, n);
}

API phxfs_batch_t *phxfs_batch_submit_write(phxfs_io_req_t *reqs, int n) {
  return submit("phxfs_batch_submit_write", 1, reqs, n);
}

API int phxfs_batch_wait(phxfs_batch_t *handle) {
  ENTER("phxfs_batch_wait");
  if (err) return refused(err);
  struct go_wait_return r = go_wait((uint64_t)(uintptr_t)handle);
  LEAVE(r);
}

API int phxfs_batch_destroy(phxfs_batch_t *handle) {
  ENTER("phxfs_batch_destroy");
  if (err) return refused(err);
  struct go_destroy_return r = go_destroy((uint64_t)(uintptr_t)handle);
  LEAVE(r);
}

API const char *phxfs_io_engine_name(void) {
  ENTER("phxfs_io_engine_name");
  if (err) {
    errno = err;
    return NULL;
  }
  struct go_engine_name_return r = go_engine_name();
  done(&c, saved, r.r1);
  return r.r0 ? "io_uring" : "sync";
}
