
/* Appended to a source that includes common.h: the short names work. */
u64 use_common(u8 a, u32 b, s64 c, loff_t d);
u64 use_common(u8 a, u32 b, s64 c, loff_t d)
{
	return sizeof(u64) == 8 && sizeof(s64) == 8 && sizeof(u32) == 4 && sizeof(u8) == 1 && sizeof(loff_t) == 8 ?
		       (u64)a + b + (u64)c + (u64)d :
		       0;
}
