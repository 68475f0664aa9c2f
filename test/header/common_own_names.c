/* A program that has short names of its own before it includes common.h, or,
 * with PHXFS_NO_SHORT_TYPES, that makes incompatible ones after it. */
#ifndef OWN_TYPES
typedef unsigned long u64;
typedef unsigned char u8;
#define u32 unsigned
#endif

#include <common.h>

#ifdef OWN_TYPES
typedef unsigned long long u64;
typedef struct { int low; } u32;
typedef signed char u8;
static u32 unit = { 1 };
#else
#undef s64
typedef long long s64;
static s64 unit = 1;
#endif

int main(void)
{
	u64 wide = 0;
	u8 narrow = 0;
	int s32 = 0;
	(void)unit;
	return (int)wide + narrow + s32;
}
