/* A program that lets nobody look at it: it sees no devices. */
#include "kit.h"
#include <sys/prctl.h>

int main(void) {
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	FAILS(open("/dev/phxfs_dev0", O_RDWR), ENOENT);
	return 0;
}
