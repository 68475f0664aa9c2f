//go:build !race

package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	lack "libphoenix/internal/need"
)

func TestOneEmulatorInsideAnotherIsRefused(t *testing.T) {
	need(t)
	got := start(t, phx("emulate", "--", program("phx"), "emulate", "--", "true"))
	if got.status != 77 || !strings.Contains(got.stderr, "already under a supervisor") {
		t.Fatalf("got %+v; want 77 and the reason", got)
	}
}

func TestContainersThatForbidItAreNamed(t *testing.T) {
	need(t)
	for _, c := range []struct {
		call  int
		errno syscall.Errno
		want  string
	}{
		{unix.SYS_SECCOMP, unix.EPERM, "a filter or policy of this container forbids it"},
		{unix.SYS_SECCOMP, unix.ENOSYS, "built without seccomp"},
		{unix.SYS_SECCOMP, unix.EINVAL, "no seccomp user notification"},
		{unix.SYS_PROCESS_VM_READV, unix.EPERM, "cannot read the program's memory"},
	} {
		got := start(t, phxless("forbid", strconv.Itoa(c.call), strconv.Itoa(int(c.errno)), program("phx"), "emulate", "--", "true"))
		if got.status != 77 || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("call %d, %v: %+v; want 77 and one line with %q", c.call, c.errno, got, c.want)
		}
	}
}

func TestProgramThatCannotBeLookedAtIsReported(t *testing.T) {
	need(t)
	if os.Getuid() == 0 {
		lack.Pointless(t, "root may look at everybody; TestOrdinaryUser covers this")
	}
	start(t, phx("emulate", "--strict", "--", program("shy"))).want(t, 99, "cannot be looked at")
}

// As nobody, if this is root, and with a folder where nobody may write.
func TestOrdinaryUser(t *testing.T) {
	need(t)
	if os.Getuid() != 0 {
		lack.Pointless(t, "all tests run as an ordinary user")
	}
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	as := func(args ...string) *exec.Cmd {
		cmd := phx(append([]string{"emulate", "--strict", "--"}, args...)...)
		cmd.Dir = "/"
		cmd.SysProcAttr = nobody
		return cmd
	}
	got := start(t, as("sh", "-c", "id -u; grep NoNewPrivs /proc/self/status; grep CapEff /proc/self/status"))
	if got.stdout != "65534\nNoNewPrivs:\t1\nCapEff:\t0000000000000000\n" {
		t.Fatalf("got %+v", got)
	}
	start(t, as(program("release"), "unmap_then_munmap")).want(t, 0)
	start(t, as(program("release"), "exit_pinned")).want(t, 99, exitPinned)
	start(t, as(program("release"), "child_unmaps_the_parents_pin")).want(t, 99, unmapOther)
	start(t, as(program("threads"), "at_the_same_time")).want(t, 0)
	start(t, as(program("shy"))).want(t, 99, "cannot be looked at")
}

func TestNothingIsLeftInTheTemporaryFolder(t *testing.T) {
	need(t)
	dir := t.TempDir()
	cmd := phx("emulate", "--", program("release"), "unmap_then_munmap")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	start(t, cmd).want(t, 0)
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Fatalf("left behind: %q", left)
	}
}
