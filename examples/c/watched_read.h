/*
 * watched_read.h - reads as phxfs_read_batch does, and draws a progress line
 * with rate and remaining time on stderr.
 *
 * The requests go as a row of asynchronous batches, as many ahead as the library
 * queues. It carries them out in that order, one at a time with all its threads,
 * so each one that is complete moves the line. Every batch ends with a moment in
 * which only its last requests run; one batch for everything saves that.
 */
#ifndef EXAMPLE_WATCHED_READ_H
#define EXAMPLE_WATCHED_READ_H

#include <phoenix.h>

/*
 * reqs, n   as for phxfs_read_batch; n > 0.
 * Returns   the number of failed requests; 0 is full success. -1 with errno: a
 *           batch could not run; the results are not to be used.
 */
int watched_read(phxfs_io_req_t *reqs, int n);

#endif
