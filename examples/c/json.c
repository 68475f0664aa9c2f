/* json.c - see json.h. */
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int json_fail(struct json *j, const char *format, ...)
{
	size_t used;
	va_list args;

	if (j->error[0])
		return 0;
	snprintf(j->error, sizeof j->error, "header byte %zu: ", j->at);
	used = strlen(j->error);
	va_start(args, format);
	vsnprintf(j->error + used, sizeof j->error - used, format, args);
	va_end(args);
	return 0;
}

char json_peek(struct json *j)
{
	while (j->at < j->size && strchr(" \t\n\r", j->text[j->at]) && j->text[j->at])
		j->at++;
	return j->at < j->size ? j->text[j->at] : '\0';
}

int json_take(struct json *j, char c)
{
	if (j->error[0])
		return 0;
	if (json_peek(j) != c)
		return json_fail(j, j->at < j->size ? "expected '%c'" : "expected '%c', but the header ends", c);
	j->at++;
	return 1;
}

int json_next(struct json *j, char close, size_t *n)
{
	if (j->error[0])
		return 0;
	if (json_peek(j) == close) {
		j->at++;
		return 0;
	}
	if (*n > 0 && !json_take(j, ','))
		return 0;
	++*n;
	return 1;
}

/* Four hexadecimal digits; -1 if they are not there. */
static long hex4(struct json *j)
{
	long value = 0;
	int i;

	for (i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef";
		char c = j->at < j->size ? j->text[j->at] : '\0';
		const char *found = strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
		if (!c || !found)
			return -1;
		value = value * 16 + (found - digits);
		j->at++;
	}
	return value;
}

static char *put_utf8(char *out, unsigned long c)
{
	if (c < 0x80) {
		*out++ = (char)c;
		return out;
	}
	if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (c & 0x3f));
	return out;
}

/* What follows a backslash. Writes it at out and returns the end; NULL: error. */
static char *escape(struct json *j, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = j->at < j->size ? j->text[j->at] : '\0';
	const char *simple = c ? strchr(from, c) : NULL;
	long high, low = 0;

	if (simple) {
		j->at++;
		*out++ = to[simple - from];
		return out;
	}
	if (c != 'u') {
		json_fail(j, "unknown escape in a string");
		return NULL;
	}
	j->at++;
	high = hex4(j);
	if (high >= 0xd800 && high < 0xdc00 && j->size - j->at > 2 && !memcmp(j->text + j->at, "\\u", 2)) {
		j->at += 2;
		low = hex4(j);
		if (low < 0xdc00 || low > 0xdfff)
			high = -1;
		else
			high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	if (high <= 0 || (high >= 0xd800 && high <= 0xdfff)) {
		json_fail(j, high == 0 ? "NUL in a string" : "bad \\u escape in a string");
		return NULL;
	}
	return put_utf8(out, (unsigned long)high);
}

/* Length of the UTF-8 character at p, n bytes left; 0 if it is not valid. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	size_t i;

	if (len == 0 || len > n)
		return 0;
	for (i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0; /* longer than needed, a surrogate, or beyond U+10FFFF */
	return len;
}

char *json_string(struct json *j)
{
	char *start, *out;

	if (!json_take(j, '"'))
		return NULL;
	start = out = j->text + j->at;
	while (j->at < j->size && j->text[j->at] != '"') {
		const unsigned char *p = (const unsigned char *)j->text + j->at;
		size_t len = utf8_length(p, j->size - j->at);
		if (len == 0 || *p < 0x20) {
			json_fail(j, len ? "control character in a string" : "not UTF-8");
			return NULL;
		}
		if (*p == '\\') {
			j->at++;
			out = escape(j, out);
			if (!out)
				return NULL;
			continue;
		}
		memmove(out, p, len); /* an escape is longer than what it stands for */
		out += len;
		j->at += len;
	}
	if (!json_take(j, '"'))
		return NULL;
	*out = '\0';
	return start;
}

int json_uint(struct json *j, uint64_t *value)
{
	size_t first;

	if (j->error[0])
		return 0;
	json_peek(j);
	first = j->at;
	*value = 0;
	for (; j->at < j->size && j->text[j->at] >= '0' && j->text[j->at] <= '9'; j->at++) {
		unsigned digit = (unsigned)(j->text[j->at] - '0');
		if (j->at > first && *value == 0)
			return json_fail(j, "number with a leading zero");
		if (*value > (UINT64_MAX - digit) / 10)
			return json_fail(j, "number beyond 64 bits");
		*value = *value * 10 + digit;
	}
	if (j->at == first)
		return json_fail(j, "expected a whole number");
	if (j->at < j->size && strchr(".eE", j->text[j->at]) && j->text[j->at])
		return json_fail(j, "expected a whole number");
	return 1;
}

int json_end(struct json *j)
{
	if (j->error[0])
		return 0;
	json_peek(j);
	return j->at == j->size ? 1 : json_fail(j, "something follows the JSON text");
}
