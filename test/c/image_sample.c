/* image_sample.c - not a program: a library around cabi/image.c alone, which
 * fork_image loads. It stands for libphoenix.so, -D breaks one assumption. */
#include <stddef.h>
#include <stdint.h>

#include "../../cabi/image.h"
#include "../../cabi/start.h"

#ifndef ENTRIES
#define ENTRIES 1
#endif
int phx_start_entries(void) { return ENTRIES; }

/* Go's word; on arm64 Go has two words and uses one. */
#if defined(__aarch64__)
#define WORDS 2
#else
#define WORDS 1
#endif
#ifdef WIDE_TLS
#define MORE 2
#else
#define MORE 0
#endif
static __thread struct { void *word[WORDS + MORE]; } go __attribute__((tls_model("initial-exec")));
#ifdef SECOND_TLS
__attribute__((visibility("default"))) __thread char second __attribute__((tls_model("initial-exec")));
#endif
#ifdef SECOND_RANGE
__attribute__((section("far"))) int sample_far = 1;
#endif

char sample_data[70000] = {1, 2, 3}, sample_bss[300000];
static struct phx_image image __attribute__((section(".data")));
struct phx_image *sample_image(void) { return &image; }
void **sample_word(void) { return &go.word[0]; }
#ifdef SECOND_TLS
char *sample_second(void) { return &second; }
#endif
void sample_take(void) { phx_image_take(&image); }
void sample_restore(void) {
  struct phx_image m = image;
  phx_image_restore(&m);
}
int sample_holds(const void *p) { return phx_image_holds(&image, p); }
