//go:build !race

package emulator

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// phxless is a program without phx around it.
func phxless(name string, args ...string) *exec.Cmd { return exec.Command(program(name), args...) }

func TestStatusAndSignalAreThePrograms(t *testing.T) {
	need(t)
	if got := start(t, phx("emulate", "--", "sh", "-c", "echo out; echo err >&2; exit 3")); got.status != 3 || got.stdout != "out\n" || got.stderr != "err\n" {
		t.Errorf("got %+v; want status 3, out and err", got)
	}
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "SEGV": syscall.SIGSEGV, "PIPE": syscall.SIGPIPE} {
		if got := start(t, phx("emulate", "--", "sh", "-c", "kill -"+name+" $$")); got.signal != sig || got.stderr != "" {
			t.Errorf("got %+v; want death of %v and silence", got, sig)
		}
	}
	got := start(t, phx("emulate", "--", program("release"), "killed_pinned"))
	if got.signal != syscall.SIGKILL {
		t.Errorf("got %+v; want death of SIGKILL", got)
	}
	got.want(t, -1, exitPinned)
	start(t, phx("emulate", "--strict", "--", program("release"), "killed_pinned")).want(t, 99, exitPinned)
}

func TestProgramsThatCannotBeRun(t *testing.T) {
	need(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, status := range map[string]int{"no-such-program-here": 127, "./absent": 127, "/etc/passwd": 126, plain: 126} {
		got := start(t, phx("emulate", "--", program))
		if got.status != status || strings.Count(got.stderr, "phx emulate: ") != 1 {
			t.Errorf("%s: status %d, want %d, and one line:\n%s", program, got.status, status, got.stderr)
		}
	}
}

func TestStdinAndInheritedDescriptorsReachTheProgram(t *testing.T) {
	need(t)
	cmd := phx("emulate", "--", "sh", "-c", "cat; cat <&3; cat <&4")
	cmd.Stdin = strings.NewReader("zero ")
	for _, text := range []string{"three ", "four"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		defer r.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	}
	if got := start(t, cmd); got.stdout != "zero three four" || got.status != 0 {
		t.Fatalf("got %+v", got)
	}
}

func TestProgramHasTheSameDescriptorsAsWithout(t *testing.T) {
	need(t)
	const list = "ls /proc/$$/fd"
	bare := start(t, exec.Command("sh", "-c", list))
	if got := start(t, phx("emulate", "--", "sh", "-c", list)); got.stdout != bare.stdout {
		t.Fatalf("the program has\n%s\nwithout the emulator it has\n%s", got.stdout, bare.stdout)
	}
}

// A process that outlives the program is waited for, and judged.
func TestOrphansAreWaitedFor(t *testing.T) {
	need(t)
	got := start(t, phx("emulate", "--strict", "--", "sh", "-c",
		`(read -r line <"$1"; exec "$0" exit_pinned) & exec 3>"$1"; echo go >&3; exit 5`, program("release"), fifo(t)))
	got.want(t, 99, exitPinned)
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// running starts a command and waits for the first line it prints.
func running(t *testing.T, cmd *exec.Cmd) (finish func() (string, outcome)) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("first line %q, %v\n%s", line, err, &stderr)
	}
	return func() (string, outcome) {
		late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		rest, _ := io.ReadAll(lines)
		return string(rest), finishOf(t, cmd, &stderr)
	}
}

func finishOf(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) outcome {
	return finish(t, cmd, new(bytes.Buffer), stderr)
}

func TestSignalsAreForwarded(t *testing.T) {
	need(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		cmd := phx("emulate", "--", program("signals"), "once")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		end := running(t, cmd)
		_ = cmd.Process.Signal(sig)
		if got, o := end(); got != "got "+sigName(sig)+"\n" || o.status != 7 {
			t.Errorf("%v: program printed %q, %+v", sig, got, o)
		}
	}
}

func sigName(sig syscall.Signal) string {
	return map[syscall.Signal]string{
		syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGTERM: "TERM",
		syscall.SIGHUP: "HUP", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	}[sig]
}

func TestProgramDiesWithTheEmulator(t *testing.T) {
	need(t)
	cmd := phx("emulate", "--", program("signals"), "once")
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // its sysfs stays behind
	end := running(t, cmd)
	_ = cmd.Process.Kill()
	if got, o := end(); got != "" || o.signal != syscall.SIGKILL { // its end of stdout was closed
		t.Fatalf("program printed %q, phx %+v", got, o)
	}
}
