/* t_data.h - scratch files and data that can be verified.
 *
 * Byte i of pattern seed has a value of its own, so data that came from
 * another place or another file is noticed. */
#ifndef T_DATA_H
#define T_DATA_H

#include <stdint.h>
#include <sys/types.h>

/* Addresses of registrations are looked through (t_host). */
void t_fill(void *to, size_t n, uint32_t seed, uint64_t first);
/* Index of the first wrong byte, -1 if all n are right. */
long long t_wrong(const void *data, size_t n, uint32_t seed, uint64_t first);

/* A new file without a name in the current directory, open for reading and
 * writing, holding size bytes of pattern seed. Ends the program if it cannot. */
int t_file(size_t size, uint32_t seed);
/* The same file opened again with other flags; -1 and errno as open(2). */
int t_reopen(int fd, int flags);
/* A descriptor number that is not open. */
int t_closed_fd(void);

/* Zeroed private memory, its address a multiple of T_PAGE, with a page of no
 * access on either side. Ends the program if there is none. */
void *t_map(size_t len);
void t_unmap(void *p, size_t len);

#define CHECK_DATA(data, n, seed, first, ...)                                            \
  do {                                                                                   \
    long long t_at = t_wrong(data, n, seed, first);                                      \
    t_int(__FILE__, __LINE__, "first wrong byte of " #data, t_at, -1, -1, -1, __VA_ARGS__); \
  } while (0)

#endif
