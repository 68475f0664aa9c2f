/* safetensors.c - see safetensors.h; the JSON is in safetensors_header.c. */
#define _POSIX_C_SOURCE 200809L
#include "safetensors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_HEADER = 100000000 }; /* bytes, the format's own limit */

typedef unsigned long long ull; /* for printf */

static const struct dtype {
	const char *name;
	unsigned bits; /* of one element */
} dtypes[] = {
	{"BOOL", 8}, {"U8", 8}, {"I8", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
	{"U16", 16}, {"I16", 16}, {"F16", 16}, {"BF16", 16}, {"U32", 32}, {"I32", 32}, {"F32", 32},
	{"U64", 64}, {"I64", 64}, {"F64", 64}, {"C64", 64},
	{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

void st_printable(char *text)
{
	unsigned char *c = (unsigned char *)text;

	for (; *c; c++) {
		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?'; /* U+0080 to U+009F, controls too */
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
}

static int refuse(struct st_file *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct st_file *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->why, sizeof f->why, format, args);
	va_end(args);
	st_printable(f->why);
	return 0;
}

/* dtype and shape must ask for as many bytes as data_offsets give. */
static int check_size(struct st_file *f, const struct st_tensor *t)
{
	const struct dtype *d = dtypes, *last = dtypes + sizeof dtypes / sizeof *dtypes;
	uint64_t bits;
	int i;

	while (d < last && strcmp(d->name, t->dtype) != 0)
		d++;
	if (d == last)
		return refuse(f, "tensor '%.80s': unknown dtype '%.40s'", t->name, t->dtype);
	bits = d->bits;
	for (i = 0; i < t->ndim; i++)
		if (__builtin_mul_overflow(bits, t->shape[i], &bits))
			return refuse(f, "tensor '%.80s': the shape is too large", t->name);
	if (bits % 8)
		return refuse(f, "tensor '%.80s': does not fill whole bytes", t->name);
	if (t->begin > t->end)
		return refuse(f, "tensor '%.80s': ends before it begins", t->name);
	if (t->end - t->begin != bits / 8)
		return refuse(f, "tensor '%.80s': dtype and shape ask for %llu bytes, data_offsets give %llu",
			      t->name, (ull)(bits / 8), (ull)(t->end - t->begin));
	if (t->end > f->data_bytes)
		return refuse(f, "tensor '%.80s': ends at byte %llu, but the file has %llu bytes of data",
			      t->name, (ull)t->end, (ull)f->data_bytes);
	return 1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct st_tensor *)a)->name, ((const struct st_tensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
	const struct st_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int check_tensors(struct st_file *f)
{
	const struct st_tensor *t = f->tensors;
	uint64_t at = 0;
	size_t i;

	if (f->count == 0)
		return f->data_bytes == 0 || refuse(f, "%llu bytes of data, but no tensor", (ull)f->data_bytes);
	qsort(f->tensors, f->count, sizeof *t, by_name);
	for (i = 1; i < f->count; i++)
		if (strcmp(t[i - 1].name, t[i].name) == 0)
			return refuse(f, "tensor '%.80s' appears twice", t[i].name);
	for (i = 0; i < f->count; i++)
		if (!check_size(f, &t[i]))
			return 0;
	qsort(f->tensors, f->count, sizeof *t, by_place);
	for (i = 0; i < f->count; at = t[i++].end) {
		if (t[i].begin < at)
			return refuse(f, "tensors '%.80s' and '%.80s' overlap", t[i - 1].name, t[i].name);
		if (t[i].begin > at)
			return refuse(f, "no tensor covers bytes %llu to %llu of the data", (ull)at, (ull)t[i].begin);
	}
	return at == f->data_bytes ||
	       refuse(f, "no tensor covers bytes %llu to %llu of the data", (ull)at, (ull)f->data_bytes);
}

static int read_exactly(int fd, struct st_file *f, void *to, size_t size, off_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(fd, (char *)to + done, size - done, at + (off_t)done);
		if (got == 0)
			return refuse(f, "the file ends within the header");
		if (got < 0 && errno != EINTR)
			return refuse(f, "reading the header: %s", strerror(errno));
		done += got > 0 ? (size_t)got : 0;
	}
	return 1;
}

static int read_header(int fd, struct st_file *f, size_t *size)
{
	unsigned char raw[8];
	uint64_t n = 0;
	struct stat st;
	int i;

	if (fstat(fd, &st) != 0)
		return refuse(f, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(f, "not a regular file");
	if (!read_exactly(fd, f, raw, sizeof raw, 0))
		return 0;
	for (i = 7; i >= 0; i--)
		n = n << 8 | raw[i];
	if (n > MOST_HEADER)
		return refuse(f, "header of %llu bytes: not a safetensors file", (ull)n);
	if (n > (uint64_t)st.st_size - sizeof raw)
		return refuse(f, "the file ends within the header");
	f->data_at = (off_t)(sizeof raw + n);
	f->data_bytes = (uint64_t)(st.st_size - f->data_at);
	f->header = malloc((size_t)n + 1);
	*size = (size_t)n;
	return f->header ? read_exactly(fd, f, f->header, *size, sizeof raw) : refuse(f, "out of memory");
}

int st_read(int fd, struct st_file *f)
{
	struct json j = {0};

	memset(f, 0, sizeof *f);
	if (!read_header(fd, f, &j.size))
		return -1;
	j.text = f->header;
	if (j.size == 0 || *j.text != '{')
		refuse(f, "the header does not begin with '{': not a safetensors file");
	else if (!st_parse(&j, f))
		refuse(f, "%s", j.error);
	else if (check_tensors(f))
		return 0;
	return -1;
}

void st_free(struct st_file *f)
{
	free(f->tensors);
	free(f->header);
}
