/*
 * common.h - lets programs that include the earlier C++ library's <common.h>
 * compile unchanged. New programs include phxfs_ioctl.h instead.
 *
 * It brings the ioctl requests (phxfs_ioctl.h), the system headers such
 * programs lean on, and the short integer names they use: u64, s64, u8, u32,
 * and loff_t where the C library does not have it. As in that library the
 * short names are macros: a typedef would clash with a program that has its
 * own typedef of the same name before the include, tests #ifdef u64, or says
 * #undef u64 and makes another. A name that is already a macro is left alone.
 * Define PHXFS_NO_SHORT_TYPES before the include to get none of them.
 */
#ifndef PHXFS_COMMON_H
#define PHXFS_COMMON_H

#include "phxfs_ioctl.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef PHXFS_NO_SHORT_TYPES
#ifndef u64
#define u64 uint64_t
#endif
#ifndef s64
#define s64 int64_t
#endif
#ifndef u32
#define u32 uint32_t
#endif
#ifndef u8
#define u8 uint8_t
#endif
/* glibc declares loff_t unless a strict standard is asked for (__USE_MISC says
 * so); other C libraries make it a macro or leave it out. */
#if !defined(loff_t) && !defined(__USE_MISC)
#define loff_t off_t
#endif
#endif /* PHXFS_NO_SHORT_TYPES */

#endif /* PHXFS_COMMON_H */
