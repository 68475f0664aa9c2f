/*
 * safetensors.h - reads the table of tensors of a safetensors file.
 *
 * The format: 8 bytes, the length of the header (little-endian); the header, a
 * JSON object that gives each tensor's element type, shape and place; then the
 * data, which the tensors cover without gap and without overlap.
 */
#ifndef EXAMPLE_SAFETENSORS_H
#define EXAMPLE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "json.h"

enum { ST_MAX_DIMS = 8 };

struct st_tensor {
	const char *name;  /* UTF-8, in st_file.header */
	const char *dtype; /* "F32", "BF16", ...; in st_file.header */
	int ndim;          /* 0: a scalar */
	uint64_t shape[ST_MAX_DIMS];
	uint64_t begin, end; /* bytes from the start of the data */
};

struct st_file {
	struct st_tensor *tensors; /* in the order of the data */
	size_t count;
	off_t data_at;       /* where the data begins in the file */
	uint64_t data_bytes; /* the rest of the file */
	char *header;
	char why[240]; /* after a failure: what is wrong, one printable line */
};

/*
 * Reads and checks the header of fd, a regular file.
 *
 * Returns 0; or -1, and f->why tells why. Either way st_free(f) follows.
 */
int st_read(int fd, struct st_file *f);

void st_free(struct st_file *f);

/* Overwrites what could steer a terminal: names are the file's, not ours. */
void st_printable(char *text);

/*
 * The part of st_read that takes the header apart: fills tensors and count and
 * checks grammar only. Returns 0 after an error, which j->error holds.
 */
int st_parse(struct json *j, struct st_file *f);

#endif
