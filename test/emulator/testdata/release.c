/* UNMAP, munmap, revoke and the end of a process. */
#include "kit.h"

static int fd;

static void unmap_then_munmap(void) {
	char *p = registration(fd, GPU);
	CHECK(unmap(fd, p, UNIT, GPU) == 0 && munmap(p, UNIT) == 0);
}

static void exit_pinned(void) { registration(fd, GPU); }

static void killed_pinned(void) {
	registration(fd, GPU);
	raise(SIGKILL);
}

static void munmap_first_then_unmap(void) {
	char *p = registration(fd, GPU);
	CHECK(munmap(p, UNIT) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void munmap_and_address_reused(void) {
	char *p = registration(fd, GPU);
	CHECK(munmap(p, UNIT) == 0);
	CHECK(mmap(p, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == p);
	CHECK(map(fd, p, UNIT, GPU) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void unmap_twice(void) {
	char *p = registration(fd, GPU);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void unmap_twice_around_munmap(void) {
	char *p = registration(fd, GPU);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	CHECK(munmap(p, UNIT) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void unmap_before_map(void) {
	char *p = shared(fd, UNIT);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void unmap_unknown(void) { CHECK(unmap(fd, (char *)UNIT, UNIT, GPU) == 0); }

static void unmap_interior(void) {
	char *p = shared(fd, 2 * UNIT);
	CHECK(map(fd, p, 2 * UNIT, GPU) == 0);
	CHECK(unmap(fd, p + UNIT, UNIT, GPU + UNIT) == 0);
	CHECK(unmap(fd, p, 2 * UNIT, GPU) == 0);
}

static void unmap_wrong_length(void) {
	char *p = shared(fd, 2 * UNIT);
	CHECK(map(fd, p, 2 * UNIT, GPU) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	CHECK(unmap(fd, p, 2 * UNIT, GPU) == 0);
}

static void unmap_after_mremap(void) {
	char *p = registration(fd, GPU);
	char *q = (char *)mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, p + 16 * UNIT);
	CHECK(q == p + 16 * UNIT);
	CHECK(unmap(fd, q, UNIT, GPU) == 0);
}

static void child_unmaps_the_parents_pin(void) {
	char *p = registration(fd, GPU);
	if (fork() == 0)
		_exit(unmap(fd, p, UNIT, GPU) != 0);
	int status;
	CHECK(wait(&status) > 0 && status == 0);
}

static void parent_unmaps_after_the_child(void) {
	char *p = registration(fd, GPU);
	if (fork() == 0)
		_exit(unmap(fd, p, UNIT, GPU) != 0);
	CHECK(wait(NULL) > 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

/* A child uses the parent's registration and drops nothing. */
static void child_borrows(void) {
	char *p = registration(fd, GPU);
	if (fork() == 0) {
		p[3] = 3;
		char *q = registration(fd, GPU + UNIT);
		_exit(unmap(fd, q, UNIT, GPU + UNIT) != 0 || munmap(p, UNIT) != 0);
	}
	int status;
	CHECK(wait(&status) > 0 && status == 0);
	CHECK(p[3] == 3 && unmap(fd, p, UNIT, GPU) == 0);
}

static void child_exits_pinned(void) {
	if (fork() == 0) {
		registration(fd, GPU);
		_exit(0);
	}
	CHECK(wait(NULL) > 0);
}

/* The parent is gone and its pin with it when the child tries to drop it. */
static void child_outlives_the_parent(void) {
	char *p = registration(fd, GPU);
	int alive[2];
	CHECK(pipe(alive) == 0);
	if (fork() == 0) {
		char b;
		close(alive[1]);
		CHECK(read(alive[0], &b, 1) == 0); /* its end was closed by the parent's exit */
		for (;;) { /* until the emulator has seen it, too */
			char path[200], list[200];
			snprintf(path, sizeof path, "%s/pins", getenv("PHX_EMULATE_CONTROL"));
			int pins = open(path, O_RDONLY);
			CHECK(pins >= 0);
			ssize_t n = read(pins, list, sizeof list);
			close(pins);
			if (n == 0)
				break;
		}
		_exit(unmap(fd, p, UNIT, GPU) != 0);
	}
}

static void exec_pinned(void) {
	registration(fd, GPU);
	execlp("true", "true", (char *)NULL);
	CHECK(0);
}

/* --inject revoke */
static void revoked_by_rule_then_exit(void) {
	registration(fd, GPU);
}

static void revoked_by_rule_then_unmap(void) {
	char *p = registration(fd, GPU);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void revoked_by_command(void) {
	FAILS(command("revoke"), ENOENT);
	char *p = registration(fd, GPU), *q = registration(fd, GPU + UNIT);
	FAILS(command("revoke/0x7e0000000000"), ENOENT);
	CHECK(command("revoke/0x7f0000010008") == 0); /* inside the second */
	FAILS(command("revoke/0x7f0000010008"), ENOENT);
	CHECK(touch(q) == 0); /* the mapping stays */
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	p = registration(fd, GPU);
	CHECK(command("revoke") == 0);
	FAILS(command("revoke/x"), EINVAL);
	FAILS(command("nonsense"), EINVAL);
}

static void unmap_after_revoke(void) {
	char *p = registration(fd, GPU);
	CHECK(command("revoke") == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

static void rules_by_command(void) {
	char *p = shared(fd, UNIT);
	CHECK(command("inject/map:ENOMEM:0:1,unmap:EIO:1:-1") == 0);
	FAILS(map(fd, p, UNIT, GPU), ENOMEM);
	CHECK(map(fd, p, UNIT, GPU) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	p = registration(fd, GPU);
	FAILS(unmap(fd, p, UNIT, GPU), EIO);
	CHECK(command("inject-none") == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
	FAILS(command("inject/nonsense"), EINVAL);
	FAILS(command("inject"), EINVAL);
}

static void pins_are_listed(void) {
	char want[200], got[200] = "", path[200];
	char *p = registration(fd, GPU);
	snprintf(want, sizeof want, "pid %d device 0 host %p addr %#lx len %lu\n", getpid(), (void *)p, GPU, UNIT);
	snprintf(path, sizeof path, "%s/pins", getenv("PHX_EMULATE_CONTROL"));
	int list = open(path, O_RDONLY);
	CHECK(list >= 0 && read(list, got, sizeof got) > 0);
	CHECK(strcmp(got, want) == 0);
	CHECK(unmap(fd, p, UNIT, GPU) == 0);
}

#define CASE(f) {#f, f}
static const struct test tests[] = {
	CASE(unmap_then_munmap), CASE(exit_pinned), CASE(killed_pinned), CASE(munmap_first_then_unmap),
	CASE(munmap_and_address_reused), CASE(unmap_twice), CASE(unmap_twice_around_munmap), CASE(unmap_before_map),
	CASE(unmap_unknown), CASE(unmap_interior), CASE(unmap_wrong_length), CASE(unmap_after_mremap),
	CASE(child_unmaps_the_parents_pin), CASE(parent_unmaps_after_the_child), CASE(child_borrows),
	CASE(child_outlives_the_parent), CASE(child_exits_pinned), CASE(exec_pinned), CASE(revoked_by_rule_then_exit), CASE(revoked_by_rule_then_unmap),
	CASE(revoked_by_command), CASE(unmap_after_revoke), CASE(rules_by_command), CASE(pins_are_listed),
};
int main(int argc, char **argv) {
	if (argc > 1)
		fd = node(0);
	return run_case(argc, argv, tests, sizeof tests / sizeof *tests);
}
