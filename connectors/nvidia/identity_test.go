package nvidia

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// memory is a stand-in libcuda with one allocation of 1 MiB at 0x10000000,
// whose buffer id CUDA_STANDIN_ID gives (none: freed).
const memory = `
#include <stdlib.h>
#include <errno.h>
int cuPointerGetAttribute(void *data, int attribute, unsigned long long addr) {
	const char *id = getenv("CUDA_STANDIN_ID");
	errno = 77;
	if (attribute != 7) return 801;
	if (!id || addr < 0x10000000 || addr >= 0x10100000) return 1;
	*(unsigned long long *)data = strtoull(id, 0, 0);
	return 0;
}
`

// relay calls a function by its address, as the exit handler does.
const relay = `
struct question { int (*ask)(unsigned long, unsigned long, unsigned long *); unsigned long addr, len, id; };
int relay(struct question *q) { return q->ask(q->addr, q->len, &q->id); }
`

func TestIdentityFuncCanBeCalledByItsAddress(t *testing.T) {
	lib, err := dl.Open(dltest.Build(t, t.TempDir(), "librelay.so", relay))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	call, err := lib.Symbol("relay")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{})
	_, want := c.Identity(0x10000000, 1<<20)
	q := struct {
		ask           uintptr
		addr, len, id uint64
	}{c.IdentityFunc(), 0x10000000, 1 << 20, 0}
	if got := connectors.LifeState(call.CallP(unsafe.Pointer(&q))); got != want {
		t.Fatalf("through the address: state %d, through Identity: %d", got, want)
	}
}

// exit is a program without Go: threads race to the first question, and an
// exit handler that was registered before libcuda came asks the last one.
const exit = `
#define _GNU_SOURCE
#include "identity.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *ask(void *bad) {
	uint64_t id = 9;
	errno = 5;
	if (phx_nvidia_identity(0x10000010, 4096, &id) != PHX_LIFE_KNOWN || id != 88 || errno != 5) *(int *)bad = 1;
	return 0;
}
static void at_exit(void) {
	int bad = 0;
	ask(&bad);
	if (bad) _exit(4);
	setenv("CUDA_STANDIN_ID", "89", 1);
	uint64_t id = 0;
	if (phx_nvidia_identity(0x10000010, 4096, &id) != PHX_LIFE_KNOWN || id != 89) _exit(5);
	unsetenv("CUDA_STANDIN_ID");
	if (phx_nvidia_identity(0x10000010, 4096, &id) != PHX_LIFE_GONE || id != 89) _exit(6);
	printf("asked at exit\n");
}
int main(int argc, char **argv) {
	uint64_t id = 9;
	pthread_t thread[8];
	int bad = 0;
	if (argc != 2 || phx_nvidia_identity(0x10000010, 4096, &id) != PHX_LIFE_UNASKED || id != 9) return 1;
	atexit(at_exit);
	if (!dlopen(argv[1], RTLD_NOW)) return 2;
	setenv("CUDA_STANDIN_ID", "88", 1);
	for (int i = 0; i < 8; i++) pthread_create(&thread[i], 0, ask, &bad);
	for (int i = 0; i < 8; i++) pthread_join(thread[i], 0);
	return bad ? 3 : 0;
}
`

func TestIdentityNeedsNoGoAndAnswersAtExit(t *testing.T) {
	dir := t.TempDir()
	lib := dltest.Build(t, dir, "libcuda.so.1", memory)
	program := dltest.Program(t, dir, "exit", exit, "-std=gnu11", "-I.", "identity.c")
	cmd := exec.Command(program, lib)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir) // a question that loads would find it
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "asked at exit\n" {
		t.Fatalf("%v, output %q; want %q (the exit status is the step)", err, out, "asked at exit\n")
	}
}
