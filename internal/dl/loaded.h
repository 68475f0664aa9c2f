/* loaded.h - is a library in this process? Asked without the loader.
 *
 * dlopen(RTLD_NOLOAD) answers as well, but in a forked child whose parent was in
 * dlopen in another thread it walks lists that are half written, or waits for
 * a lock that nobody holds: one such child in ten crashed or hung (glibc 2.36).
 * Here the loader's list of objects (r_debug, which debuggers read) is read
 * through process_vm_readv, so that a torn list is an EFAULT and not a SIGSEGV,
 * and ends somewhere. What lies beyond a tear counts as not loaded: an object
 * that was being added when the parent forked.
 *
 * No lock, no allocation; keeps errno. Everything is static: the connectors'
 * exit-time questions need no Go and no other file. */
#ifndef PHX_DL_LOADED_H
#define PHX_DL_LOADED_H

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PHX_LOADED_NO = 0,
	PHX_LOADED_YES = 1,
	PHX_LOADED_UNKNOWN = -1, /* process_vm_readv is forbidden here: ask the loader */

	PHX_LOADED_OBJECTS = 16384, /* more than any process has: a ring in the list ends */
	PHX_LOADED_DYNAMIC = 256,   /* entries of a dynamic section that are looked at */
	PHX_LOADED_NAME = 4096,     /* bytes of a file name */
};

/* Weak: a static program has none. */
extern struct r_debug _r_debug __attribute__((weak));

/* glibc 2.35 chains the namespaces of dlmopen behind it (r_version 2). */
struct phx_loaded_space {
	struct r_debug debug;
	struct phx_loaded_space *next;
};

/* Copies n bytes of this process, 0 or the errno. */
static inline int phx_loaded_read(void *to, const void *from, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n};
	ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
	return got == (ssize_t)n ? 0 : got < 0 ? errno : EFAULT;
}

/* Is the text at `from`, after its last '/', the name? Read in pieces that end
 * where a page may end. */
static inline int phx_loaded_is(const char *from, const char *name)
{
	char piece[256];
	size_t at = 0; /* bytes of name that the current component matches; SIZE_MAX: it differs */
	for (size_t seen = 0; from && seen < PHX_LOADED_NAME;) {
		size_t n = sizeof piece - ((uintptr_t)(from + seen) & (sizeof piece - 1));
		if (phx_loaded_read(piece, from + seen, n))
			return 0;
		for (size_t i = 0; i < n; i++) {
			if (piece[i] == '/')
				at = 0;
			else if (!piece[i])
				return at != SIZE_MAX && !name[at];
			else
				at = at != SIZE_MAX && name[at] == piece[i] ? at + 1 : SIZE_MAX;
		}
		seen += n;
	}
	return 0;
}

/* The object's own name (DT_SONAME), by which the loader finds it whatever its
 * file is called. */
static inline int phx_loaded_soname_is(const struct link_map *object, const char *name)
{
	const char *strings = NULL;
	size_t offset = SIZE_MAX;
	ElfW(Dyn) piece[16];
	int n, end = !object->l_ld;
	for (int seen = 0; !end && seen < PHX_LOADED_DYNAMIC; seen += n) {
		const ElfW(Dyn) *from = &object->l_ld[seen];
		n = (int)((4096 - ((uintptr_t)from & 4095)) / sizeof *piece); /* none of it in the next page */
		n = n > 16 ? 16 : n < 1 ? 1 : n;
		end = phx_loaded_read(piece, from, (size_t)n * sizeof *piece);
		for (int i = 0; !end && i < n; i++) {
			end = piece[i].d_tag == DT_NULL;
			if (piece[i].d_tag == DT_STRTAB)
				strings = (const char *)piece[i].d_un.d_ptr;
			if (piece[i].d_tag == DT_SONAME)
				offset = piece[i].d_un.d_val;
		}
	}
	if (!strings || offset == SIZE_MAX)
		return 0;
	if ((uintptr_t)strings < object->l_addr) /* not relocated in place */
		strings += object->l_addr;
	return phx_loaded_is(strings + offset, name);
}

/* name: a base name, "libcuda.so.1". Any thread, also in an atexit handler. */
static inline int phx_loaded(const char *name)
{
	int saved = errno, err = 0, answer = PHX_LOADED_NO, left = PHX_LOADED_OBJECTS;
	struct phx_loaded_space space, *s = (struct phx_loaded_space *)&_r_debug;
	struct link_map object, *o;
	for (; s && left > 0 && answer == PHX_LOADED_NO; s = space.debug.r_version > 1 ? space.next : NULL, left--) {
		space.next = NULL;
		if ((err = phx_loaded_read(&space.debug, s, sizeof space.debug)))
			break;
		if (space.debug.r_version > 1)
			(void)phx_loaded_read(&space.next, &s->next, sizeof space.next);
		for (o = space.debug.r_map; o && left > 0 && answer == PHX_LOADED_NO; o = object.l_next, left--) {
			if (phx_loaded_read(&object, o, sizeof object))
				break;
			if (phx_loaded_is(object.l_name, name) || phx_loaded_soname_is(&object, name))
				answer = PHX_LOADED_YES;
		}
	}
	if (err && err != EFAULT)
		answer = PHX_LOADED_UNKNOWN;
	errno = saved;
	return answer;
}

#endif
