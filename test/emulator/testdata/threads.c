/* Threads that map devices at the same time, with signals in between. */
#include "kit.h"
#include <pthread.h>
#include <sys/time.h>

enum { THREADS = 16, ROUNDS = 200 };
static int shared_fd;
static pthread_barrier_t start;

/* Every registration must have pages of its own: each thread writes its mark
 * and finds it again. */
static void *registers(void *arg) {
	long me = (long)arg;
	int own = me % 2 ? shared_fd : node((int)(me % 8));
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t addr = GPU + (uint64_t)(me * ROUNDS + i) * UNIT;
		char *p = registration(own, addr);
		long mark = me * ROUNDS + i;
		CHECK(*(long *)p == 0);
		*(long *)p = mark;
		sched_yield();
		CHECK(*(long *)p == mark);
		CHECK(unmap(own, p, UNIT, addr) == 0 && munmap(p, UNIT) == 0);
	}
	return NULL;
}

static void hammer(void) {
	pthread_t t[THREADS];
	shared_fd = node(0);
	pthread_barrier_init(&start, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, registers, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
}

static void at_the_same_time(void) { hammer(); }

static void nothing(int sig) { (void)sig; }

static void with_signals(void) {
	struct sigaction a = {0};
	struct itimerval every = {{0, 500}, {0, 500}};
	a.sa_handler = nothing;
	a.sa_flags = SA_RESTART;
	CHECK(sigaction(SIGALRM, &a, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	hammer();
}

/* mmaps that fail leave no mapping to look for. */
static void *fails(void *arg) {
	pthread_barrier_wait(&start);
	for (int i = 0; i < 50; i++)
		CHECK(mmap((char *)1, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared_fd, 0) == MAP_FAILED);
	return arg;
}

static void failing_mmaps_do_not_hold_others_up(void) {
	pthread_t t[4];
	shared_fd = node(0);
	pthread_barrier_init(&start, NULL, 4);
	for (long i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, i % 2 ? fails : registers, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
}

/* The process ends while threads of it wait for the (slow) device. */
static void *maps(void *arg) {
	pthread_barrier_wait(&start);
	registration(shared_fd, GPU);
	return arg;
}

static void exit_with_requests_pending(void) {
	pthread_t t;
	shared_fd = node(0);
	pthread_barrier_init(&start, NULL, 4);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&t, NULL, maps, NULL) == 0);
	pthread_barrier_wait(&start);
}

#define CASE(f) {#f, f}
static const struct test tests[] = {
	CASE(at_the_same_time), CASE(with_signals), CASE(failing_mmaps_do_not_hold_others_up), CASE(exit_with_requests_pending),
};
CASES(tests)
