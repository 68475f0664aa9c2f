/*
 * json.h - a strict reader for small JSON texts (RFC 8259), one token at a time.
 *
 * The caller knows which token must come next and asks for it; anything else is
 * an error. After the first error every call fails and json.error tells what was
 * wrong and where.
 */
#ifndef EXAMPLE_JSON_H
#define EXAMPLE_JSON_H

#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;      /* borrowed; strings are decoded in place */
	size_t at, size; /* next byte, number of bytes */
	char error[200]; /* empty while all is well */
};

/* Records the first error, a sentence without the place. Returns 0. */
int json_fail(struct json *j, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The next byte that is not white space, unread; '\0' at the end. */
char json_peek(struct json *j);

/* Takes the byte c. Returns 0 if another stands there. */
int json_take(struct json *j, char c);

/*
 * Steps through the members of an object or the items of an array, both ended
 * by close. *n counts them; the caller sets it to 0 after the opening bracket.
 * Returns 1 if one more follows, 0 at the end or after an error.
 */
int json_next(struct json *j, char close, size_t *n);

/*
 * Takes a string. Returns it decoded, valid UTF-8 without NUL bytes, ended by
 * '\0', inside j->text; NULL after an error.
 */
char *json_string(struct json *j);

/* Takes a whole number, 0..2^64-1, without sign, fraction or exponent. */
int json_uint(struct json *j, uint64_t *value);

/* Nothing but white space may be left. */
int json_end(struct json *j);

#endif
