/* image.h - the library's own writable memory: what it looked like before Go
 * ran, and how to get back there (in a forked child). */
#ifndef PHX_IMAGE_H
#define PHX_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* A build whose image is never taken: of a sanitizer, or of another Go toolchain. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(PHX_FORK_CLOSED)
#define PHX_NO_IMAGE 1
#endif

struct phx_image {
  char *lo, *hi;                  /* all of the library: a handler in here is Go's */
  char *rw_lo, *data_hi, *rw_hi;  /* writable, not RELRO: data up to data_hi, then zeroes */
  char *snapshot;                 /* [rw_lo, data_hi) before Go's entry ran; read-only pages */
  ptrdiff_t tls;                  /* Go's one TLS word, relative to the thread pointer */
  const char *why;                /* why the image cannot be restored; NULL: it can */
};

/* Measures the image, checks every assumption that phx_image_restore rests on
 * and takes the snapshot. To be called before Go's entry has ever run here. */
void phx_image_take(struct phx_image *m);

/* Puts the writable memory back to the snapshot and the calling thread's Go
 * word to zero. Only in a process with one thread. */
void phx_image_restore(const struct phx_image *m);

/* The calling thread's Go word: NULL unless Go is bound to the thread. */
void *phx_image_word(const struct phx_image *m);

bool phx_image_holds(const struct phx_image *m, const void *p);

#endif
