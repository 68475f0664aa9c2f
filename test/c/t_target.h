/* t_target.h - where the data of a registration is.
 *
 * On the host device that is the address itself. On an emulated device
 * (run.py --emulate) it is the target that regmem gave, as on a real one:
 * whatever stands at the "device address" is never touched. */
#ifndef T_TARGET_H
#define T_TARGET_H

#include <stdbool.h>
#include <stddef.h>

bool t_emulated(void); /* not the host device */

/* Where the byte at addr of a registered range is in this process; addr itself
 * if no live registration holds it. On several devices: the newest one's. */
void *t_host(const void *addr);

/* t_wrap.c tells, for each registration of a program that is linked with the library. */
void t_target_made(int device, const void *addr, size_t len, void *target);
void t_target_gone(int device, const void *addr, size_t len);
void t_target_closed(int device); /* all of its registrations are gone */

#endif
