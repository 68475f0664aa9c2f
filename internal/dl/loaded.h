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
 * The list is walked anew each time, but in few system calls: what the last walk
 * read is fetched ahead, many places in one call, and where the list is as it
 * was this one finds there all that it asks for (struct phx_loaded_trail).
 *
 * Waits for nobody, no allocation; keeps errno. Everything is static: the connectors'
 * exit-time questions need no Go and no other file. */
#ifndef PHX_DL_LOADED_H
#define PHX_DL_LOADED_H

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
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
	PHX_LOADED_TRAIL = 1024,    /* places that are remembered, some five for each object */
	PHX_LOADED_AHEAD = 64,      /* places, and */
	PHX_LOADED_BYTES = 8192,    /* bytes that are fetched ahead in one call */
};

/* Weak: a static program has none. */
extern struct r_debug _r_debug __attribute__((weak));

/* glibc 2.35 chains the namespaces of dlmopen behind it (r_version 2). */
struct phx_loaded_space {
	struct r_debug debug;
	struct phx_loaded_space *next;
};

/* Where the last walk read, in its order: only where, so that whatever lies here,
 * of a library that is gone or of a walk cut short by fork, costs a system call
 * and no more. One walk at a time has it; the others do without. */
struct phx_loaded_trail {
	_Atomic int taken;
	int n;
	struct iovec place[PHX_LOADED_TRAIL];
	char ahead[PHX_LOADED_BYTES];
};

/* One walk. */
struct phx_loaded_walk {
	pid_t pid;
	struct phx_loaded_trail *trail; /* NULL: another walk has it */
	int at;                         /* places that this walk has read */
	int left;                       /* so many more are ahead */
	const char *next;               /* the first of them */
	int known;                      /* place[at..known) is the last walk's, as far as this one has met it */
};

static inline void phx_loaded_begin(struct phx_loaded_walk *w)
{
	static struct phx_loaded_trail trail;
	*w = (struct phx_loaded_walk){.pid = getpid()};
	if (atomic_exchange_explicit(&trail.taken, 1, memory_order_acquire))
		return;
	w->trail = &trail;
	w->known = trail.n < PHX_LOADED_TRAIL ? trail.n : PHX_LOADED_TRAIL;
}

static inline void phx_loaded_end(struct phx_loaded_walk *w)
{
	if (!w->trail)
		return;
	w->trail->n = w->at < PHX_LOADED_TRAIL ? w->at : PHX_LOADED_TRAIL;
	atomic_store_explicit(&w->trail->taken, 0, memory_order_release);
}

/* Fetches the next places of the trail, up to one that cannot be read. */
static inline void phx_loaded_fetch(struct phx_loaded_walk *w)
{
	struct phx_loaded_trail *t = w->trail;
	size_t bytes = 0;
	int n = 0;
	while (n < PHX_LOADED_AHEAD && w->at + n < w->known && t->place[w->at + n].iov_len <= sizeof t->ahead - bytes)
		bytes += t->place[w->at + n++].iov_len;
	struct iovec here = {t->ahead, bytes};
	ssize_t got = n > 1 ? process_vm_readv(w->pid, &here, 1, &t->place[w->at], (unsigned long)n, 0) : 0;
	w->next = t->ahead;
	for (w->left = 0; w->left < n && (ssize_t)t->place[w->at + w->left].iov_len <= got; w->left++)
		got -= (ssize_t)t->place[w->at + w->left].iov_len;
}

/* Copies n bytes of this process, 0 or the errno. */
static inline int phx_loaded_read(struct phx_loaded_walk *w, void *to, const void *from, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n}, *place = NULL;
	if (w->trail && w->at < PHX_LOADED_TRAIL) {
		place = &w->trail->place[w->at];
		if (w->at < w->known && (place->iov_base != there.iov_base || place->iov_len != n))
			w->known = w->left = 0; /* another list than the last time */
		if (!w->left && w->at < w->known)
			phx_loaded_fetch(w);
	}
	w->at++;
	if (place && w->left) {
		memcpy(to, w->next, n);
		w->next += n, w->left--;
		return 0;
	}
	if (place)
		*place = there;
	ssize_t got = process_vm_readv(w->pid, &here, 1, &there, 1, 0);
	return got == (ssize_t)n ? 0 : got < 0 ? errno : EFAULT;
}

/* Is the text at `from`, after its last '/', the name? Read in pieces that end
 * where a page may end. */
static inline int phx_loaded_is(struct phx_loaded_walk *w, const char *from, const char *name)
{
	char piece[256];
	size_t at = 0; /* bytes of name that the current component matches; SIZE_MAX: it differs */
	for (size_t seen = 0; from && seen < PHX_LOADED_NAME;) {
		size_t n = sizeof piece - ((uintptr_t)(from + seen) & (sizeof piece - 1));
		if (phx_loaded_read(w, piece, from + seen, n))
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
static inline int phx_loaded_soname_is(struct phx_loaded_walk *w, const struct link_map *object, const char *name)
{
	const char *strings = NULL;
	size_t offset = SIZE_MAX;
	ElfW(Dyn) piece[16];
	int n, end = !object->l_ld;
	for (int seen = 0; !end && seen < PHX_LOADED_DYNAMIC; seen += n) {
		const ElfW(Dyn) *from = &object->l_ld[seen];
		n = (int)((4096 - ((uintptr_t)from & 4095)) / sizeof *piece); /* none of it in the next page */
		n = n > 16 ? 16 : n < 1 ? 1 : n;
		end = phx_loaded_read(w, piece, from, (size_t)n * sizeof *piece);
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
	return phx_loaded_is(w, strings + offset, name);
}

/* name: a base name, "libcuda.so.1". Any thread, also in an atexit handler. */
static inline int phx_loaded(const char *name)
{
	int saved = errno, err = 0, answer = PHX_LOADED_NO, left = PHX_LOADED_OBJECTS;
	struct phx_loaded_space space, *s = (struct phx_loaded_space *)&_r_debug;
	struct link_map object, *o;
	struct phx_loaded_walk w;
	phx_loaded_begin(&w);
	for (; s && left > 0 && answer == PHX_LOADED_NO; s = space.debug.r_version > 1 ? space.next : NULL, left--) {
		space.next = NULL;
		if ((err = phx_loaded_read(&w, &space.debug, s, sizeof space.debug)))
			break;
		if (space.debug.r_version > 1)
			(void)phx_loaded_read(&w, &space.next, &s->next, sizeof space.next);
		for (o = space.debug.r_map; o && left > 0 && answer == PHX_LOADED_NO; o = object.l_next, left--) {
			if (phx_loaded_read(&w, &object, o, sizeof object))
				break;
			if (phx_loaded_is(&w, object.l_name, name) || phx_loaded_soname_is(&w, &object, name))
				answer = PHX_LOADED_YES;
		}
	}
	phx_loaded_end(&w);
	if (err && err != EFAULT)
		answer = PHX_LOADED_UNKNOWN;
	errno = saved;
	return answer;
}

#endif
