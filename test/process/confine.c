/* confine - runs a program under a seccomp filter, as a container would.
 *
 *   confine MODE COMMAND [ARGUMENT...]
 *   MODE: uring-eperm   io_uring_setup, _enter and _register fail with EPERM
 *         uring-enosys  the same with ENOSYS
 *         docker        only what Docker's default profile lets an unprivileged
 *                       container do (moby 24, profiles/seccomp/default.json,
 *                       no capabilities); all else EPERM, clone3 ENOSYS
 *
 * Exit status: the command's; 77: this machine has no seccomp filters. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static const int uring[] = {425, 426, 427};

/* The names of the profile's first rule that this architecture has. */
static const int allowed[] = {
#define S(name) __NR_##name,
#include "docker_default.h" /* made of docker_default.txt by containers.py */
#undef S
};

#define COUNT(a) (sizeof a / sizeof *a)
#define NR offsetof(struct seccomp_data, nr)
#define ARG0 offsetof(struct seccomp_data, args[0])

static struct sock_filter code[2048];
static unsigned short used;
static void emit(struct sock_filter f) { code[used++] = f; }
static void load(unsigned offset) { emit((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
static void answer(unsigned action) { emit((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action)); }
/* if (A == k) return action; */
static void when(unsigned k, unsigned action) {
  emit((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1));
  answer(action);
}
static unsigned fails(int e) { return SECCOMP_RET_ERRNO | (unsigned)e; }

static void begin(void) {
  load(offsetof(struct seccomp_data, arch));
  emit((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
  answer(fails(EPERM));
  load(NR);
}

static void without_uring(int e) {
  begin();
  for (size_t i = 0; i < COUNT(uring); i++) when((unsigned)uring[i], fails(e));
  answer(SECCOMP_RET_ALLOW);
}

/* if (nr == n) { A = first argument; body...; } The body always answers. */
static void argument_rule(unsigned n, void (*body)(void)) {
  unsigned short at = used;
  emit((struct sock_filter){0}); /* set below */
  load(ARG0);
  body();
  code[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, (unsigned char)(used - at - 1));
}

static void no_namespaces(void) { /* clone with CLONE_NEW* only */
  unsigned spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
  emit((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 0, 1));
  answer(fails(EPERM));
  answer(SECCOMP_RET_ALLOW);
}
static void no_vsock(void) {
  when(AF_VSOCK, fails(EPERM));
  answer(SECCOMP_RET_ALLOW);
}
static void known_personalities(void) {
  const unsigned known[] = {0, 8, 0x20000, 0x20008, 0xffffffff};
  for (size_t i = 0; i < COUNT(known); i++) when(known[i], SECCOMP_RET_ALLOW);
  answer(fails(EPERM));
}

static void docker(void) {
  begin();
  argument_rule(__NR_clone, no_namespaces);
  argument_rule(__NR_socket, no_vsock);
  argument_rule(__NR_personality, known_personalities);
  when(__NR_clone3, fails(ENOSYS));
  for (size_t i = 0; i < COUNT(allowed); i++) when((unsigned)allowed[i], SECCOMP_RET_ALLOW);
  answer(fails(EPERM));
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "confine uring-eperm|uring-enosys|docker COMMAND...\n"), 2;
  if (!strcmp(argv[1], "uring-eperm")) without_uring(EPERM);
  else if (!strcmp(argv[1], "uring-enosys")) without_uring(ENOSYS);
  else if (!strcmp(argv[1], "docker")) docker();
  else return fprintf(stderr, "confine: no mode %s\n", argv[1]), 2;
  struct sock_fprog p = {used, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) {
    perror("confine: seccomp");
    return 77;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
