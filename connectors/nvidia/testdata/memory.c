/* Asks the identity of real CUDA memory of every kind through its whole life.
 * Exit status: 0 as docs/abi.md §5 needs it, 1 not, 77 no CUDA device here.
 * Built by real_test.go together with ../identity.c; needs no CUDA headers. */
#define _GNU_SOURCE
#include "identity.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t addr;
struct location { int type, id; };
struct memory_prop { int type, handles; struct location at; void *win32; unsigned char flags[8]; };
struct access { struct location at; int flags; };

static struct {
	int (*Init)(unsigned), (*DeviceGet)(int *, int), (*DevicePrimaryCtxRetain)(void **, int), (*CtxSetCurrent)(void *);
	int (*MemAlloc_v2)(addr *, size_t), (*MemFree_v2)(addr), (*MemAllocManaged)(addr *, size_t, unsigned);
	int (*MemAllocAsync)(addr *, size_t, void *), (*MemFreeAsync)(addr, void *), (*StreamSynchronize)(void *);
	int (*MemCreate)(addr *, size_t, const struct memory_prop *, unsigned long long), (*MemRelease)(addr);
	int (*MemAddressReserve)(addr *, size_t, size_t, addr, unsigned long long), (*MemAddressFree)(addr, size_t);
	int (*MemMap)(addr, size_t, size_t, addr, unsigned long long), (*MemUnmap)(addr, size_t);
	int (*MemSetAccess)(addr, size_t, const struct access *, size_t);
} cu;

enum { MIB = 1 << 20, UNIT = 2 * MIB };
static int failures;
static addr last; /* alive at exit */
static uint64_t last_id;

static uint64_t expect(const char *when, addr a, int want)
{
	uint64_t id = 0;
	int got = phx_nvidia_identity(a, &id);
	printf("%-46s state %d id %llu%s\n", when, got, (unsigned long long)id, got == want ? "" : "   <- WRONG");
	failures += got != want;
	return id;
}

static void check(const char *what, int ok)
{
	printf("%-46s %s\n", what, ok ? "yes" : "NO   <- WRONG");
	failures += !ok;
}

static void must(const char *what, int code)
{
	if (code) {
		printf("%s failed with %d\n", what, code);
		exit(1);
	}
}

static void *elsewhere(void *unused)
{
	check("a thread without a context gets the same id", expect("from another thread", last, PHX_LIFE_KNOWN) == last_id);
	return unused;
}

static void at_exit(void)
{
	uint64_t id = 0;
	int state = phx_nvidia_identity(last, &id);
	printf("at exit: state %d id %llu\n", state, (unsigned long long)id);
	fflush(stdout);
	if (state != PHX_LIFE_KNOWN || id != last_id)
		_exit(1);
}

static void plain(void)
{
	addr a, b = 0;
	expect("never allocated", 0x1000, PHX_LIFE_GONE);
	must("cuMemAlloc", cu.MemAlloc_v2(&a, 4 * MIB));
	uint64_t id = expect("allocated", a, PHX_LIFE_KNOWN);
	check("an interior address has the same id", expect("  interior", a + 3 * MIB, PHX_LIFE_KNOWN) == id);
	must("cuMemFree", cu.MemFree_v2(a));
	expect("freed", a, PHX_LIFE_GONE);
	must("cuMemAlloc", cu.MemAlloc_v2(&b, 4 * MIB));
	if (b == a)
		check("a new allocation there has another id", expect("  allocated again", b, PHX_LIFE_KNOWN) != id);
	must("cuMemFree", cu.MemFree_v2(b));
}

static void managed_and_pooled(void)
{
	addr a;
	if (cu.MemAllocManaged(&a, UNIT, 1) == 0) {
		expect("managed", a, PHX_LIFE_KNOWN);
		must("cuMemFree", cu.MemFree_v2(a));
		expect("managed, freed", a, PHX_LIFE_GONE);
	}
	if (cu.MemAllocAsync(&a, UNIT, NULL) == 0) {
		must("sync", cu.StreamSynchronize(NULL));
		expect("from the stream-ordered pool", a, PHX_LIFE_KNOWN);
		must("cuMemFreeAsync", cu.MemFreeAsync(a, NULL));
		must("sync", cu.StreamSynchronize(NULL));
		expect("  freed", a, PHX_LIFE_GONE);
	}
}

/* Mapped memory: the kind that expandable segments of PyTorch are made of. */
static void mapped(void)
{
	struct memory_prop prop = {.type = 1, .at = {1, 0}, .flags = {0, 1}};
	struct access access = {{1, 0}, 3};
	addr handle[2], a;
	must("cuMemAddressReserve", cu.MemAddressReserve(&a, 2 * UNIT, 0, 0, 0));
	expect("reserved addresses", a, PHX_LIFE_GONE);
	for (int i = 0; i < 2; i++) {
		must("cuMemCreate", cu.MemCreate(&handle[i], UNIT, &prop, 0));
		must("cuMemMap", cu.MemMap(a + (addr)i * UNIT, UNIT, 0, handle[i], 0));
	}
	must("cuMemSetAccess", cu.MemSetAccess(a, 2 * UNIT, &access, 1));
	uint64_t first = expect("mapped", a, PHX_LIFE_KNOWN);
	uint64_t second = expect("  its neighbour", a + UNIT, PHX_LIFE_KNOWN);
	printf("  neighbours have %s id\n", first == second ? "the same" : "each their own");
	must("cuMemUnmap", cu.MemUnmap(a, UNIT));
	expect("unmapped", a, PHX_LIFE_GONE);
	must("cuMemMap", cu.MemMap(a, UNIT, 0, handle[0], 0));
	must("cuMemSetAccess", cu.MemSetAccess(a, UNIT, &access, 1));
	printf("  the same memory mapped again has %s id\n", expect("mapped again", a, PHX_LIFE_KNOWN) == first ? "the same" : "another");
	must("cuMemUnmap", cu.MemUnmap(a, 2 * UNIT));
	for (int i = 0; i < 2; i++)
		must("cuMemRelease", cu.MemRelease(handle[i]));
	must("cuMemAddressFree", cu.MemAddressFree(a, 2 * UNIT));
}

static void load(void)
{
	expect("no libcuda in the process", 0x1000, PHX_LIFE_UNASKED);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib)
		exit(77);
#define LOAD(f) if (!(cu.f = dlsym(lib, "cu" #f))) { printf("no cu" #f "\n"); exit(1); }
	LOAD(Init) LOAD(DeviceGet) LOAD(DevicePrimaryCtxRetain) LOAD(CtxSetCurrent) LOAD(MemAlloc_v2) LOAD(MemFree_v2)
	LOAD(MemAllocManaged) LOAD(MemAllocAsync) LOAD(MemFreeAsync) LOAD(StreamSynchronize) LOAD(MemCreate) LOAD(MemRelease)
	LOAD(MemAddressReserve) LOAD(MemAddressFree) LOAD(MemMap) LOAD(MemUnmap) LOAD(MemSetAccess)
	expect("libcuda loaded, not initialised", 0x1000, PHX_LIFE_GONE);
}

int main(void)
{
	int device;
	void *context;
	load();
	if (cu.Init(0) || cu.DeviceGet(&device, 0))
		exit(77);
	must("cuDevicePrimaryCtxRetain", cu.DevicePrimaryCtxRetain(&context, device));
	must("cuCtxSetCurrent", cu.CtxSetCurrent(context));
	plain();
	managed_and_pooled();
	mapped();

	must("cuMemAlloc", cu.MemAlloc_v2(&last, 4 * MIB));
	last_id = expect("the last allocation", last, PHX_LIFE_KNOWN);
	pthread_t thread;
	pthread_create(&thread, NULL, elsewhere, NULL);
	pthread_join(thread, NULL);
	must("cuCtxSetCurrent(NULL)", cu.CtxSetCurrent(NULL));
	expect("without a current context", last, PHX_LIFE_KNOWN);

	struct timespec from, to;
	enum { ROUNDS = 100000 };
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id;
		phx_nvidia_identity(last, &id);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%.0f ns per question\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / ROUNDS);
	atexit(at_exit);
	return failures != 0;
}
