package dl

import (
	"os/exec"
	"strings"
	"testing"

	"libphoenix/internal/dl/dltest"
)

// loaded asks about itself. Exit status: the line that fails.
const loaded = `
#include <sys/uio.h>
static _Thread_local int calls;
#define process_vm_readv(...) (calls++, process_vm_readv(__VA_ARGS__))
#include "loaded.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#define IS(name, want) if (errno = 7, phx_loaded(name) != (want) || errno != 7) return __LINE__
static struct link_map *last(void) {
	struct link_map *o = _r_debug.r_map;
	while (o->l_next) o = o->l_next;
	return o;
}
// Asks while others ask and the list changes. NULL: the answers were right.
static void *asks(void *over) {
	while (!atomic_load((atomic_int *)over))
		if (phx_loaded("libc.so.6") != PHX_LOADED_YES || phx_loaded("nonsense") != PHX_LOADED_NO) return over;
	return NULL;
}
int main(int argc, char **argv) {
	(void)argv;
	if (argc < 2) { IS("libc.so.6", PHX_LOADED_NO); return 0; } // static: there is no list
	IS("libc.so.6", PHX_LOADED_YES);
	IS("libc.so", PHX_LOADED_NO);
	IS("libc.so.66", PHX_LOADED_NO);
	IS("ibc.so.6", PHX_LOADED_NO);
	IS("c.so.6", PHX_LOADED_NO);
	IS("nonsense", PHX_LOADED_NO);
	IS("libphx-asked.so.1", PHX_LOADED_NO);
	void *h = dlopen(argv[1], RTLD_NOW);
	if (!h) return __LINE__;
	IS("libphx-asked.so.1", PHX_LOADED_YES); // its own name
	IS("libphx-file.so", PHX_LOADED_YES);    // its file's
	// Torn: the next object is no memory, is half written, is an earlier one.
	struct link_map *end = last(), half = {.l_name = (char *)16, .l_ld = (void *)24, .l_next = (void *)32};
	end->l_next = (void *)16;
	IS("nonsense", PHX_LOADED_NO);
	IS("libphx-asked.so.1", PHX_LOADED_YES);
	end->l_next = &half;
	IS("nonsense", PHX_LOADED_NO);
	end->l_next = _r_debug.r_map;
	IS("nonsense", PHX_LOADED_NO);
	end->l_next = NULL;
	if (dlclose(h)) return __LINE__;
	IS("libphx-asked.so.1", PHX_LOADED_NO);
	// The same list again: few calls, and no old answers when it changes.
	for (int i = 0; i < 3; i++) {
		IS("nonsense", PHX_LOADED_NO);
		calls = 0;
		IS("nonsense", PHX_LOADED_NO);
		if (calls > 2) return __LINE__;
		calls = 0;
		IS("libc.so.6", PHX_LOADED_YES);
		if (calls > 2) return __LINE__;
		for (int k = 1; k <= 2; k++) { // the second takes the place of the first, perhaps to the byte
			if (!(h = dlopen(argv[k], RTLD_NOW))) return __LINE__;
			IS("libphx-asked.so.1", k == 1);
			IS("libphx-other.so.1", k == 2);
			if (dlclose(h)) return __LINE__;
			IS("libphx-asked.so.1", PHX_LOADED_NO);
			IS("libphx-other.so.1", PHX_LOADED_NO);
		}
	}
	atomic_int over = 0;
	pthread_t t[3];
	void *wrong;
	for (int i = 0; i < 3; i++) if (pthread_create(&t[i], NULL, asks, &over)) return __LINE__;
	for (int i = 0; i < 100; i++) {
		if (!(h = dlopen(argv[1 + i % 2], RTLD_NOW))) return __LINE__;
		IS("libc.so.6", PHX_LOADED_YES);
		if (dlclose(h)) return __LINE__;
	}
	over = 1;
	for (int i = 0; i < 3; i++) if (pthread_join(t[i], &wrong) || wrong) return __LINE__;
	// A walk that does not end, as one that fork has cut short, holds up none.
	struct phx_loaded_walk cut;
	phx_loaded_begin(&cut);
	IS("libc.so.6", PHX_LOADED_YES);
	IS("nonsense", PHX_LOADED_NO);
	phx_loaded_end(&cut);
	struct sock_filter f[] = {
		{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
		{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_process_vm_readv},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
		{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
	struct sock_fprog p = {4, f};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 0; // no filters here
	IS("libc.so.6", PHX_LOADED_UNKNOWN);
	IS("nonsense", PHX_LOADED_UNKNOWN);
	return 0;
}
`

func TestLoadedAsksWithoutTheLoader(t *testing.T) {
	dir := t.TempDir()
	lib := dltest.Build(t, dir, "libphx-file.so", "int phx_asked;", "-Wl,-soname,libphx-asked.so.1")
	other := dltest.Build(t, dir, "libphx-another.so", "int phx_asked;", "-Wl,-soname,libphx-other.so.1")
	program := dltest.Program(t, dir, "loaded", loaded, "-D_GNU_SOURCE", "-fPIC", "-I.")
	if out, err := exec.Command(program, lib, other).CombinedOutput(); err != nil {
		t.Fatalf("%v %s (the status is the line of the source)", err, out)
	}
}

func TestLoadedInAStaticProgramIsNo(t *testing.T) {
	program := dltest.Program(t, t.TempDir(), "static", strings.NewReplacer("dlopen(argv[1], RTLD_NOW)", "NULL", "dlopen(argv[k], RTLD_NOW)", "NULL", "dlopen(argv[1 + i % 2], RTLD_NOW)", "NULL").Replace(loaded), "-D_GNU_SOURCE", "-I.", "-static")
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}
