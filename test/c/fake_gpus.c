/* Eight GPUs at the addresses of phx emulate's devices, and memory of theirs
 * wherever anybody asks, until fake_gpus_free takes it away: mapped memory, each
 * 2 MiB an allocation of its own. Stands in for libcuda.so.1, preloaded by
 * run.py --emulate: what the library does about the life of memory is what it
 * does with CUDA in the process. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

enum { NO_DEVICE = 101, INVALID = 1, GPUS = 8, BUFFER_ID = 7 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long freed, freed_end;
static int taken; /* other memory lies there since */
static int strikes;

int cuInit(unsigned flags) { return flags ? INVALID : 0; }
int cuDeviceGetCount(int *n) { return *n = GPUS, 0; }
int cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= GPUS) return NO_DEVICE;
  *device = ordinal;
  return 0;
}
int cuDeviceGetPCIBusId(char *to, int len, int device) {
  if (device < 0 || device >= GPUS) return NO_DEVICE;
  return snprintf(to, (size_t)len, "0000:00:%02X.0", 4 + device) < len ? 0 : INVALID;
}
int cuPointerGetAttribute(void *to, int attribute, unsigned long long p) {
  pthread_mutex_lock(&lock);
  int gone = p >= freed && p < freed_end, other = gone && taken, strike = strikes;
  strikes = 0;
  pthread_mutex_unlock(&lock);
  if (strike) raise(SIGUSR1);
  if (attribute != BUFFER_ID || (gone && !other)) return INVALID;
  *(unsigned long long *)to = (p >> 21) + (other ? 1ull << 50 : 0);
  return 0;
}

/* Frees [p, p+len); one range at a time. again: other memory is allocated there
 * at once. */
void fake_gpus_free(unsigned long long p, unsigned long long len, int again);
void fake_gpus_free(unsigned long long p, unsigned long long len, int again) {
  pthread_mutex_lock(&lock);
  freed = p, freed_end = p + len, taken = again;
  pthread_mutex_unlock(&lock);
}

/* The next question of an allocation is interrupted: SIGUSR1 comes to the thread that asks. */
void fake_gpus_strike(void);
void fake_gpus_strike(void) {
  pthread_mutex_lock(&lock);
  strikes = 1;
  pthread_mutex_unlock(&lock);
}
