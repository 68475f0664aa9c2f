/* Data whose every 8 bytes are known from their offset and a salt. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t pattern_word(uint64_t offset, uint64_t salt) {
  uint64_t x = (offset / 8 + 1) * 0x9e3779b97f4a7c15u ^ salt * 0xd1b54a32d192ed03u;
  return x ^ x >> 29;
}

static inline void pattern_fill(void *p, size_t n, uint64_t offset, uint64_t salt) {
  for (size_t i = 0; i < n / 8; i++) ((uint64_t *)p)[i] = pattern_word(offset + i * 8, salt);
}

/* The first wrong byte's index rounded down to 8, or n. */
static inline size_t pattern_check(const void *p, size_t n, uint64_t offset, uint64_t salt) {
  for (size_t i = 0; i < n / 8; i++)
    if (((const uint64_t *)p)[i] != pattern_word(offset + i * 8, salt)) return i * 8;
  return n;
}

#endif
