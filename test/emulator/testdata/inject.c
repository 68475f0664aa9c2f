/* Three rounds of open, mmap, MAP, UNMAP, each with what it said. */
#include "kit.h"

static int said(const char *step, int failed) {
	printf("%s%s %s", strcmp(step, "open") ? " " : "", step, failed ? strerrorname_np(errno) : "ok");
	return failed;
}

static void round_of_calls(void) {
	int fd = open("/dev/phxfs_dev0", O_RDWR);
	if (said("open", fd < 0))
		return;
	void *p = mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (said("mmap", p == MAP_FAILED))
		return;
	if (said("map", map(fd, p, UNIT, GPU)))
		return;
	if (said("unmap", unmap(fd, p, UNIT, GPU)))
		said("unmap", unmap(fd, p, UNIT, GPU));
	munmap(p, UNIT);
	close(fd);
}

int main(void) {
	for (int i = 0; i < 3; i++) {
		round_of_calls();
		puts("");
	}
	return 0;
}
