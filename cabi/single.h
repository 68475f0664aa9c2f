/* single.h - phxfs_read and phxfs_write on plain process memory, without Go:
 * a C-to-Go call would cost a tenth of a hot 4 KiB pread. */
#ifndef PHX_SINGLE_H
#define PHX_SINGLE_H

#include <sys/types.h>

struct phx_state;

/* Moves nbyte bytes between fd at f_offset and buf+buf_offset. Returns bytes
 * (short at end of file; progress wins over a later error) or -errno. */
ssize_t phx_single(struct phx_state *s, int write, int fd, int device_id, void *buf,
                   off_t buf_offset, ssize_t nbyte, off_t f_offset);

#endif
