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
	int (*MemGetAllocationGranularity)(size_t *, const struct memory_prop *, int);
} cu;

enum { MIB = 1 << 20, UNIT = 2 * MIB };
static int failures;
static addr last; /* alive at exit */
static uint64_t last_id;

static uint64_t expect_range(const char *when, addr a, uint64_t len, int want)
{
	uint64_t id = 0;
	int got = phx_nvidia_identity(a, len, &id);
	printf("%-46s state %d id %llu%s\n", when, got, (unsigned long long)id, got == want ? "" : "   <- WRONG");
	failures += got != want;
	return id;
}

static uint64_t expect(const char *when, addr a, int want)
{
	return expect_range(when, a, 1, want);
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
	int state = phx_nvidia_identity(last, 1, &id);
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
static const struct memory_prop prop = {.type = 1, .at = {1, 0}, .flags = {0, 1}};
static const struct access grant = {{1, 0}, 3};

static void mapped(void)
{
	addr handle[2], a;
	must("cuMemAddressReserve", cu.MemAddressReserve(&a, 2 * UNIT, 0, 0, 0));
	expect("reserved addresses", a, PHX_LIFE_GONE);
	for (int i = 0; i < 2; i++) {
		must("cuMemCreate", cu.MemCreate(&handle[i], UNIT, &prop, 0));
		must("cuMemMap", cu.MemMap(a + (addr)i * UNIT, UNIT, 0, handle[i], 0));
	}
	must("cuMemSetAccess", cu.MemSetAccess(a, 2 * UNIT, &grant, 1));
	uint64_t first = expect("mapped", a, PHX_LIFE_KNOWN);
	uint64_t second = expect("  its neighbour", a + UNIT, PHX_LIFE_KNOWN);
	printf("  neighbours have %s id\n", first == second ? "the same" : "each their own");
	must("cuMemUnmap", cu.MemUnmap(a, UNIT));
	expect("unmapped", a, PHX_LIFE_GONE);
	must("cuMemMap", cu.MemMap(a, UNIT, 0, handle[0], 0));
	must("cuMemSetAccess", cu.MemSetAccess(a, UNIT, &grant, 1));
	printf("  the same memory mapped again has %s id\n", expect("mapped again", a, PHX_LIFE_KNOWN) == first ? "the same" : "another");
	must("cuMemUnmap", cu.MemUnmap(a, 2 * UNIT));
	for (int i = 0; i < 2; i++)
		must("cuMemRelease", cu.MemRelease(handle[i]));
	must("cuMemAddressFree", cu.MemAddressFree(a, 2 * UNIT));
}

/* Chunk number i at a, of memory of its own. */
static void map_chunk(addr a, int i)
{
	addr handle;
	must("cuMemCreate", cu.MemCreate(&handle, UNIT, &prop, 0));
	must("cuMemMap", cu.MemMap(a + (addr)i * UNIT, UNIT, 0, handle, 0));
	must("cuMemRelease", cu.MemRelease(handle)); /* lives until it is unmapped */
	must("cuMemSetAccess", cu.MemSetAccess(a + (addr)i * UNIT, UNIT, &grant, 1));
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A range of many chunks, of which one in the middle goes. */
static void chunks(void)
{
	enum { CHUNKS = 512, MIDDLE = 300, ROUNDS = 200 };
	const uint64_t len = (uint64_t)CHUNKS * UNIT;
	size_t least = 0;
	addr a;
	must("cuMemGetAllocationGranularity", cu.MemGetAllocationGranularity(&least, &prop, 0));
	check("no chunk is smaller than 2 MiB", least == UNIT);
	must("cuMemAddressReserve", cu.MemAddressReserve(&a, len, 0, 0, 0));
	check("chunks begin at multiples of 2 MiB", a % UNIT == 0);
	addr handle;
	must("cuMemCreate", cu.MemCreate(&handle, UNIT, &prop, 0));
	check("they cannot begin elsewhere", cu.MemMap(a + UNIT / 2, UNIT, 0, handle, 0) != 0);
	must("cuMemRelease", cu.MemRelease(handle));
	for (int i = 0; i < CHUNKS; i++)
		map_chunk(a, i);
	uint64_t whole = expect_range("1 GiB of chunks", a, len, PHX_LIFE_KNOWN);
	check("asked again, it is the same", expect_range("  again", a, len, PHX_LIFE_KNOWN) == whole);
	double from = now();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id;
		phx_nvidia_identity(a, len, &id);
	}
	printf("%.0f ns per question of 512\n", (now() - from) / ROUNDS / CHUNKS);
	uint64_t first = expect("its first chunk", a, PHX_LIFE_KNOWN);
	must("cuMemUnmap", cu.MemUnmap(a + (addr)MIDDLE * UNIT, UNIT));
	expect_range("one chunk in the middle unmapped", a, len, PHX_LIFE_GONE);
	check("the first chunk knows nothing of it", expect("  the first", a, PHX_LIFE_KNOWN) == first);
	map_chunk(a, MIDDLE);
	check("another chunk there is another identity", expect_range("  other memory there", a, len, PHX_LIFE_KNOWN) != whole);
	check("  and the first still knows nothing of it", expect("  the first", a, PHX_LIFE_KNOWN) == first);
	must("cuMemUnmap", cu.MemUnmap(a, len));
	expect_range("all unmapped", a, len, PHX_LIFE_GONE);
	must("cuMemAddressFree", cu.MemAddressFree(a, len));
}

/* One allocation of many pieces. */
static void large(void)
{
	const uint64_t len = 64 * (uint64_t)UNIT;
	addr a;
	must("cuMemAlloc", cu.MemAlloc_v2(&a, len));
	uint64_t id = expect_range("128 MiB in one allocation", a, len, PHX_LIFE_KNOWN);
	check("asked again, it is the same", expect_range("  again", a, len, PHX_LIFE_KNOWN) == id);
	must("cuMemFree", cu.MemFree_v2(a));
	expect_range("  freed", a, len, PHX_LIFE_GONE);
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
	LOAD(MemGetAllocationGranularity)
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
	chunks();
	large();

	must("cuMemAlloc", cu.MemAlloc_v2(&last, 4 * MIB));
	last_id = expect("the last allocation", last, PHX_LIFE_KNOWN);
	pthread_t thread;
	pthread_create(&thread, NULL, elsewhere, NULL);
	pthread_join(thread, NULL);
	must("cuCtxSetCurrent(NULL)", cu.CtxSetCurrent(NULL));
	expect("without a current context", last, PHX_LIFE_KNOWN);

	enum { ROUNDS = 100000 };
	double from = now();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id;
		phx_nvidia_identity(last, 1, &id);
	}
	printf("%.0f ns per question\n", (now() - from) / ROUNDS);
	atexit(at_exit);
	return failures != 0;
}
