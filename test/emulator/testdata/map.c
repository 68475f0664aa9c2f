/* mmap and MAP: what memory a registration has, and what MAP refuses. */
#include "kit.h"

/* A file of n bytes, each with value 0x5a. */
static int filled(size_t n, int flags) {
	char path[] = "./kit-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	char *b = (char *)malloc(n);
	memset(b, 0x5a, n);
	CHECK(write(fd, b, n) == (ssize_t)n);
	free(b);
	close(fd);
	fd = open(path, O_RDWR | flags);
	CHECK(unlink(path) == 0);
	return fd;
}

static void untouchable_before_map(void) {
	int fd = node(0), file = filled(UNIT, 0), direct = filled(UNIT, O_DIRECT);
	char *p = shared(fd, UNIT);
	CHECK(touch(p) == SIGBUS);
	FAILS(pread(file, p, UNIT, 0), EFAULT);
	if (direct >= 0)
		FAILS(pread(direct, p, UNIT, 0), EFAULT);
	CHECK(map(fd, p, UNIT, GPU) == 0);
	CHECK(touch(p) == 0);
	CHECK(pread(file, p, UNIT, 0) == (ssize_t)UNIT && p[UNIT - 1] == 0x5a);
	if (direct >= 0) {
		p[0] = 0;
		CHECK(pread(direct, p, UNIT, 0) == (ssize_t)UNIT && p[0] == 0x5a);
		CHECK(pwrite(direct, p, UNIT, 0) == (ssize_t)UNIT);
	}
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	CHECK(p[0] == 0x5a && touch(p) == 0); /* UNMAP does not zap the pages */
	CHECK(munmap(p, UNIT) == 0);
}

static void registrations_do_not_share_memory(void) {
	int fd = node(0), fd2 = dup(fd);
	char *p[4];
	int from[4] = {fd, fd, fd2, node(0)};
	for (int i = 0; i < 4; i++) {
		p[i] = registration(from[i], GPU);
		memset(p[i], i + 1, UNIT);
	}
	for (int i = 0; i < 4; i++) {
		CHECK(p[i][0] == i + 1 && p[i][UNIT - 1] == i + 1);
		CHECK(unmap(fd, p[i], UNIT, GPU) == 0);
		CHECK(munmap(p[i], UNIT) == 0);
	}
	p[0] = registration(fd, GPU); /* the address of an old one, and fresh pages */
	CHECK(p[0][0] == 0);
	CHECK(unmap(fd, p[0], UNIT, GPU) == 0);
}

static void mapping_outlives_the_descriptor(void) {
	int fd = node(0);
	char *p = registration(fd, GPU);
	CHECK(close(fd) == 0);
	p[5] = 5;
	fd = node(0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0 && p[5] == 5);
}

static void refusals(void) {
	int fd = node(0), other = node(1);
	char *p = shared(fd, 2 * UNIT);
	FAILS(request(fd, PHXFS_IOC_MAP, p, 2 * UNIT, GPU, UNIT), EINVAL);
	FAILS(map(fd, p, UNIT, GPU), EINVAL);               /* not the whole mapping */
	FAILS(map(fd, p, 3 * UNIT, GPU), EINVAL);
	FAILS(map(fd, p + UNIT, UNIT, GPU), EINVAL);        /* not its start */
	FAILS(map(fd, p, 2 * UNIT - 4096, GPU), EINVAL);
	FAILS(map(fd, p, 0, GPU), EINVAL);
	FAILS(map(fd, p, 2 * UNIT, GPU + 4096), EINVAL);    /* device address */
	FAILS(map(fd, p, 2 * UNIT, 0), EINVAL);
	FAILS(map(fd, p, 2 * UNIT, -UNIT), EINVAL);         /* past the end of everything */
	FAILS(map(other, p, 2 * UNIT, GPU), EINVAL);        /* another device's mmap */
	FAILS(map(fd, (char *)UNIT, UNIT, GPU), EFAULT);    /* nothing is mapped there */
	FAILS(ioctl(fd, PHXFS_IOC_MAP, (void *)8), EFAULT);
	FAILS(ioctl(fd, PHXFS_IOC_UNMAP, (void *)8), EFAULT);
	char *a = (char *)mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	FAILS(map(fd, a, UNIT, GPU), EINVAL);               /* no device's */
	CHECK(touch(p) == SIGBUS);                          /* and nothing is pinned */
	CHECK(map(fd, p, 2 * UNIT, GPU) == 0);
	CHECK(unmap(fd, p, 2 * UNIT, GPU) == 0);
	p = shared(fd, 2 * UNIT);
	CHECK(munmap(p + UNIT, UNIT) == 0);
	FAILS(map(fd, p, UNIT, GPU), EINVAL);               /* a part of an mmap */
	p = shared(fd, UNIT + 4096);
	FAILS(map(fd, p, UNIT + 4096, GPU), EINVAL);
}

static void params_are_read_whole(void) {
	int fd = node(0);
	char *page = (char *)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(munmap(page + 4096, 4096) == 0);
	FAILS(ioctl(fd, PHXFS_IOC_MAP, page + 4096 - 48), EFAULT); /* 8 bytes are missing */
	char *p = shared(fd, UNIT);
	struct phxfs_map_param a = {0, (uint64_t)p, UNIT, GPU, UNIT, 0, 0, 0};
	memcpy(page + 4096 - sizeof a, &a, sizeof a);
	CHECK(ioctl(fd, PHXFS_IOC_MAP, page + 4096 - sizeof a) == 0);
	CHECK(ioctl(fd, PHXFS_IOC_UNMAP, page + 4096 - sizeof a) == 0);
}

static void map_twice(void) {
	int fd = node(0);
	char *p = registration(fd, GPU);
	p[0] = 9;
	FAILS(map(fd, p, UNIT, GPU), EBUSY);
	CHECK(p[0] == 9 && unmap(fd, p, UNIT, GPU) == 0);
}

static void map_again_after_unmap(void) {
	int fd = node(0);
	char *p = registration(fd, GPU);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	FAILS(map(fd, p, UNIT, GPU), EBUSY);
}

static void private_mapping(void) {
	int fd = node(0), file = filled(UNIT, 0);
	char *p = (char *)mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK(touch(p) == SIGBUS);
	CHECK(map(fd, p, UNIT, GPU) == 0);
	CHECK(pread(file, p, UNIT, 0) == (ssize_t)UNIT && p[0] == 0x5a); /* "succeeds" */
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void mmaps_that_come_to_nothing(void) {
	int fd = node(0);
	char *kept[100];
	for (int i = 0; i < 2000; i++) {
		char *p = shared(fd, UNIT);
		if (i % 20 == 0)
			kept[i / 20] = p;
		else
			CHECK(munmap(p, UNIT) == 0);
		CHECK(mmap((char *)(uintptr_t)(i + 1), UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED);
	}
	for (int i = 0; i < 100; i++) {
		CHECK(map(fd, kept[i], UNIT, GPU + (uint64_t)i * UNIT) == 0);
		CHECK(touch(kept[i]) == 0);
		CHECK(unmap(fd, kept[i], UNIT, GPU + (uint64_t)i * UNIT) == 0);
	}
}

static void ten_thousand_registrations(void) {
	int fd = node(0);
	static char *p[10000];
	for (int i = 0; i < 10000; i++) {
		p[i] = registration(fd, GPU + (uint64_t)i * UNIT);
		*(int *)p[i] = i;
	}
	for (int i = 0; i < 10000; i++) {
		CHECK(*(int *)p[i] == i);
		CHECK(unmap(fd, p[i], UNIT, GPU + (uint64_t)i * UNIT) == 0);
		CHECK(munmap(p[i], UNIT) == 0);
	}
}

static const struct test tests[] = {
	{"untouchable_before_map", untouchable_before_map},
	{"registrations_do_not_share_memory", registrations_do_not_share_memory},
	{"mapping_outlives_the_descriptor", mapping_outlives_the_descriptor},
	{"refusals", refusals},
	{"params_are_read_whole", params_are_read_whole},
	{"map_twice", map_twice},
	{"map_again_after_unmap", map_again_after_unmap},
	{"private_mapping", private_mapping},
	{"mmaps_that_come_to_nothing", mmaps_that_come_to_nothing},
	{"ten_thousand_registrations", ten_thousand_registrations},
};
CASES(tests)
