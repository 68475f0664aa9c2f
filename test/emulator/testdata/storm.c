/* Threads that use devices while they, and every thread of the emulator, get
 * one signal after the other. Each call must do what it says, once. */
#include "kit.h"
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { THREADS = 6, ROUNDS = 150, EMULATORS = 64 };
static atomic_int running = THREADS;
static atomic_int worker[THREADS]; /* thread ids */
static void (*round_of)(int i, long n);

static void nothing(int sig) { (void)sig; }

static int descriptors(void) {
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void *works(void *arg) {
	long i = (long)arg;
	worker[i] = gettid();
	for (long n = 0; n < ROUNDS; n++)
		round_of((int)i, n);
	worker[i] = 0;
	running--;
	return NULL;
}

static int threads_of(pid_t pid, int *tids) {
	char path[64];
	int n = 0;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *d = opendir(path);
	CHECK(d != NULL);
	for (struct dirent *e; n < EMULATORS && (e = readdir(d));)
		if (atoi(e->d_name) > 0)
			tids[n++] = atoi(e->d_name);
	closedir(d);
	return n;
}

/* To the emulator goes what Go's runtime sends to its own threads. */
static void storm(void (*f)(int, long)) {
	pthread_t t[THREADS];
	int tids[EMULATORS];
	struct sigaction a = {0};
	a.sa_handler = nothing;
	a.sa_flags = SA_RESTART;
	CHECK(sigaction(SIGUSR1, &a, NULL) == 0);
	int before = descriptors();
	round_of = f;
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, works, (void *)i) == 0);
	while (running > 0) {
		int n = threads_of(getppid(), tids);
		for (int k = 0; k < 50 && running > 0; k++) {
			for (int i = 0; i < n; i++)
				syscall(SYS_tgkill, getppid(), tids[i], SIGURG);
			for (int i = 0; i < THREADS; i++)
				if (worker[i])
					syscall(SYS_tgkill, getpid(), worker[i], SIGUSR1);
			sched_yield();
		}
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(descriptors() == before);
}

static void opens(int i, long n) {
	char want[64], got[64] = "", link[64];
	int device = (int)(i + n) % 8;
	int fd = node(device);
	CHECK(fd > 2);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	snprintf(want, sizeof want, "/memfd:phxfs_dev%d (deleted)", device);
	CHECK(readlink(link, got, sizeof got - 1) > 0 && strcmp(got, want) == 0);
	CHECK(close(fd) == 0);
}

static void registers(int i, long n) {
	uint64_t addr = GPU + (uint64_t)(i * ROUNDS + n) * UNIT;
	int fd = node(i);
	char *p = registration(fd, addr);
	CHECK(*(long *)p == 0 && (*(long *)p = n, close(fd)) == 0);
	CHECK(*(long *)p == n);
	fd = node(i);
	CHECK(unmap(fd, p, UNIT, addr) == 0 && munmap(p, UNIT) == 0 && close(fd) == 0);
}

static void opens_in_a_storm(void) { storm(opens); }
static void registrations_in_a_storm(void) { storm(registers); }

#define CASE(f) {#f, f}
static const struct test tests[] = {CASE(opens_in_a_storm), CASE(registrations_in_a_storm)};
CASES(tests)
