/* safetensors_header.c - the JSON of a safetensors file: st_parse. */
#include <stdlib.h>
#include <string.h>

#include "safetensors.h"

static int parse_shape(struct json *j, struct st_tensor *t)
{
	size_t n = 0;

	json_take(j, '[');
	while (json_next(j, ']', &n)) {
		if (n > ST_MAX_DIMS)
			return json_fail(j, "more than %d dimensions", ST_MAX_DIMS);
		if (!json_uint(j, &t->shape[n - 1]))
			return 0;
		t->ndim = (int)n;
	}
	return !j->error[0];
}

static int parse_offsets(struct json *j, struct st_tensor *t)
{
	return json_take(j, '[') && json_uint(j, &t->begin) && json_take(j, ',') &&
	       json_uint(j, &t->end) && json_take(j, ']');
}

static int parse_tensor(struct json *j, struct st_tensor *t)
{
	enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
	int seen = 0, key;
	size_t n = 0;

	json_take(j, '{');
	while (json_next(j, '}', &n)) {
		const char *name = json_string(j);
		if (!name || !json_take(j, ':'))
			return 0;
		key = !strcmp(name, "dtype") ? DTYPE : !strcmp(name, "shape") ? SHAPE :
		      !strcmp(name, "data_offsets") ? OFFSETS : 0;
		if (!key || seen & key)
			return json_fail(j, "tensor '%.60s': %s key '%.40s'", t->name,
					 key ? "repeated" : "unknown", name);
		seen |= key;
		if (key == DTYPE)
			t->dtype = json_string(j);
		else if (key == SHAPE)
			parse_shape(j, t);
		else
			parse_offsets(j, t);
	}
	if (seen != ALL)
		return json_fail(j, "tensor '%.60s': %s is missing", t->name, !(seen & DTYPE) ? "dtype" :
				 !(seen & SHAPE) ? "shape" : "data_offsets");
	return !j->error[0];
}

/* Metadata is for people: strings, which are checked and not kept. */
static int parse_metadata(struct json *j)
{
	size_t n = 0;

	json_take(j, '{');
	while (json_next(j, '}', &n))
		if (!json_string(j) || !json_take(j, ':') || !json_string(j))
			return 0;
	return !j->error[0];
}

/* A fresh tensor at the end of the array, or NULL. */
static struct st_tensor *add(struct json *j, struct st_file *f)
{
	struct st_tensor *t = f->tensors;

	if ((f->count & (f->count - 1)) == 0) { /* 0 or a power of two: full */
		t = realloc(t, (f->count ? 2 * f->count : 1) * sizeof *t);
		if (!t) {
			json_fail(j, "out of memory");
			return NULL;
		}
		f->tensors = t;
	}
	t += f->count++;
	memset(t, 0, sizeof *t);
	return t;
}

int st_parse(struct json *j, struct st_file *f)
{
	size_t n = 0;
	int metadata = 0;

	json_take(j, '{');
	while (json_next(j, '}', &n)) {
		const char *name = json_string(j);
		struct st_tensor *t;
		if (!name || !json_take(j, ':'))
			return 0;
		if (strcmp(name, "__metadata__") == 0) {
			if (metadata++)
				return json_fail(j, "__metadata__ appears twice");
			parse_metadata(j);
			continue;
		}
		t = add(j, f);
		if (!t)
			return 0;
		t->name = name;
		parse_tensor(j, t);
	}
	return json_end(j);
}
