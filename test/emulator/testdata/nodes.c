/* Opening device nodes and their sysfs files, by every call that can. */
#include "kit.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

static void every_open_call_opens_a_node(void) {
	int fd[4];
	struct open_how how = {.flags = O_RDWR | O_CLOEXEC};
	fd[0] = open("/dev/phxfs_dev0", O_RDWR);
	fd[1] = openat(AT_FDCWD, "/dev/../dev//phxfs_dev1", O_RDWR | O_CREAT, 0600);
	fd[2] = (int)syscall(SYS_openat2, AT_FDCWD, "/dev/phxfs_dev1", &how, sizeof how);
	int dir = open("/dev", O_RDONLY | O_DIRECTORY);
	fd[3] = openat(dir, "phxfs_dev0", O_RDWR);
	for (int i = 0; i < 4; i++) {
		CHECK(fd[i] >= 0);
		char *p = registration(fd[i], GPU + (uint64_t)i * UNIT);
		CHECK(unmap(fd[i], p, UNIT, GPU + (uint64_t)i * UNIT) == 0);
	}
	CHECK(chdir("/dev") == 0);
	CHECK(open("phxfs_dev1", O_RDWR) >= 0);
	CHECK(open("./phxfs_dev1", O_RDONLY) >= 0);
}

static void names_that_are_no_device(void) {
	FAILS(open("/dev/phxfs_dev2", O_RDWR), ENOENT); /* run with two devices */
	FAILS(open("/dev/phxfs_dev01", O_RDWR), ENOENT);
	FAILS(open("/dev/phxfs_dev-1", O_RDWR), ENOENT);
	FAILS(open("/dev/phxfs_dev", O_RDWR), ENOENT);
	FAILS(open("/tmp/phxfs_dev0", O_RDWR), ENOENT);
	FAILS(open("/dev/phxfs_dev0/x", O_RDWR), ENOENT);
	FAILS(open("/dev/phxfs_dev0", O_RDWR | O_DIRECTORY), ENOTDIR);
	FAILS(open("/dev/phxfs_dev0", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
	FAILS(open((char *)8, O_RDWR), EFAULT);
}

static void flags_are_honoured(void) {
	int fd = open("/dev/phxfs_dev0", O_RDWR);
	CHECK(fcntl(fd, F_GETFD) == 0);
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
	registration(fd, GPU); /* left for the emulator to find */
	CHECK(fcntl(fd, F_GETFD) == 0); /* mmap has not changed that */
	fd = open("/dev/phxfs_dev0", O_RDWR | O_CLOEXEC);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	char *p = registration(fd, GPU + UNIT);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(unmap(fd, p, UNIT, GPU + UNIT) == 0);
	fd = open("/dev/phxfs_dev0", O_RDONLY | O_NONBLOCK);
	CHECK((fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK));
	CHECK(mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
}

static void stat_and_access_see_a_node(void) {
	struct stat st;
	CHECK(stat("/dev/phxfs_dev1", &st) == 0);
	CHECK(S_ISCHR(st.st_mode) && (st.st_mode & 0777) == 0600 && st.st_uid == getuid());
	CHECK(lstat("/dev/phxfs_dev1", &st) == 0 && S_ISCHR(st.st_mode));
	struct statx sx;
	CHECK(statx(AT_FDCWD, "/dev/phxfs_dev1", 0, STATX_BASIC_STATS, &sx) == 0 && S_ISCHR(sx.stx_mode));
	int fd = node(1);
	CHECK(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(syscall(SYS_fstat, fd, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && S_ISCHR(st.st_mode));
	CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx) == 0 && S_ISCHR(sx.stx_mode));
	shared(fd, UNIT);
	CHECK(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
	CHECK(fstat(0, &st) == 0 && stat("/etc", &st) == 0 && S_ISDIR(st.st_mode));
	FAILS(fstat(99, &st), EBADF);
	CHECK(access("/dev/phxfs_dev0", R_OK | W_OK) == 0);
	FAILS(access("/dev/phxfs_dev0", X_OK), EACCES);
	FAILS(stat("/dev/phxfs_dev2", &st), ENOENT);
	FAILS(access("/dev/phxfs_dev2", F_OK), ENOENT);
	FAILS(stat("/dev/phxfs_dev0", (struct stat *)8), EFAULT);
}

static void sysfs_is_served(void) {
	char text[64] = "";
	int fd = open("/sys/class/phxfs-generic/phxfs_dev1/pci_bdf", O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof text) == 13);
	CHECK(strcmp(text, "0000:00:05.0\n") == 0);
	FAILS(open("/sys/class/phxfs-generic/phxfs_dev2/pci_bdf", O_RDONLY), ENOENT);
	FAILS(open("/sys/class/phxfs-generic/phxfs_dev1/page_size", O_RDONLY), ENOENT);
	FAILS(open("/sys/class/phxfs-generic/phxfs_dev1/pci_bdf", O_RDWR), EACCES);
	CHECK(access("/sys/class/phxfs-generic/phxfs_dev0", F_OK) == 0);
	FAILS(access("/sys/class/phxfs-generic/phxfs_dev2", F_OK), ENOENT);
	struct stat st;
	CHECK(stat("/sys/class/phxfs-generic", &st) == 0 && S_ISDIR(st.st_mode));
	DIR *d = opendir("/sys/class/phxfs-generic");
	CHECK(d != NULL);
	int seen = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		seen += strncmp(e->d_name, "phxfs_dev", 9) == 0;
	CHECK(seen == 2);
	CHECK(openat(dirfd(d), "phxfs_dev0/pci_bdf", O_RDONLY) >= 0);
}

/* PHXFS_DEV_DIR and PHXFS_SYSFS_ROOT are set to folders that do not exist. */
static void other_roots(void) {
	char path[512];
	snprintf(path, sizeof path, "%s/phxfs_dev1", getenv("PHXFS_DEV_DIR"));
	CHECK(open(path, O_RDWR) >= 0);
	snprintf(path, sizeof path, "%s/class/phxfs-generic/phxfs_dev0/pci_bdf", getenv("PHXFS_SYSFS_ROOT"));
	CHECK(open(path, O_RDONLY) >= 0);
	CHECK(open("/dev/phxfs_dev1", O_RDWR) >= 0);
}

static void other_files_are_the_kernels(void) {
	char *p, text[] = "/tmp/kit-XXXXXX";
	int fd = mkstemp(text);
	CHECK(fd >= 0 && unlink(text) == 0 && ftruncate(fd, 4096) == 0);
	p = shared(fd, 4096);
	*p = 7;
	FAILS(map(fd, p, UNIT, GPU), ENOTTY);
	FAILS(map(-1, p, UNIT, GPU), EBADF);
	FAILS(ioctl(node(0), PHXFS_IOC_UNMAP + 1, NULL), ENOTTY);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 999, 0) == MAP_FAILED && errno == EBADF);
	CHECK(mmap(NULL, 0, PROT_READ | PROT_WRITE, MAP_SHARED, node(0), 0) == MAP_FAILED && errno == EINVAL);
	p = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && *p == 7);
}

static const struct test tests[] = {
	{"every_open_call_opens_a_node", every_open_call_opens_a_node},
	{"names_that_are_no_device", names_that_are_no_device},
	{"flags_are_honoured", flags_are_honoured},
	{"stat_and_access_see_a_node", stat_and_access_see_a_node},
	{"sysfs_is_served", sysfs_is_served},
	{"other_roots", other_roots},
	{"other_files_are_the_kernels", other_files_are_the_kernels},
};
CASES(tests)
