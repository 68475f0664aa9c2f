//go:build !race

package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	lack "libphoenix/internal/need"
)

// bin holds what TestMain built: phx and the programs. Other users can read it.
var bin string

// missing says why the tests cannot run; "" if they can.
var missing string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defaultSignals()
	var err error
	bin, err = os.MkdirTemp("", "phx-test-")
	if err == nil {
		err = os.Chmod(bin, 0o755)
	}
	if err == nil {
		defer os.RemoveAll(bin)
		err = build("CGO_ENABLED=1", "go", "build", "-ldflags", "-extldflags -Wl,-z,lazy", "-o", program("phx"), "../../cmd/phx") // as the Makefile does
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := exec.LookPath("cc"); err != nil {
		missing = "no C compiler (cc)"
		return m.Run()
	}
	sources, _ := filepath.Glob("testdata/*.c")
	for _, c := range sources {
		name := strings.TrimSuffix(filepath.Base(c), ".c")
		if name == "library" {
			continue // needs the library
		}
		if err := compile("cc", "-std=c11", c, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// defaultSignals lets programs have the signals that a background job ignores:
// exec hands on what is ignored, and resets what is caught.
func defaultSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func compile(compiler, standard, source, name string, more ...string) error {
	args := []string{standard, "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I../../include", "-o", program(name), source}
	return build("", compiler, append(args, more...)...)
}

func build(env, command string, args ...string) error {
	cmd := exec.Command(command, args...)
	cmd.Env = os.Environ()
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", command, args, err, out)
	}
	return nil
}

func program(name string) string { return filepath.Join(bin, name) }

func needCompiler(t *testing.T) {
	t.Helper()
	if missing != "" {
		lack.Missing(t, lack.Compiler, "%s", missing)
	}
}

// need skips the test where nothing can be emulated.
func need(t *testing.T) {
	t.Helper()
	needCompiler(t)
	got := start(t, phx("emulate", "--", "true"))
	if got.status != 77 {
		return
	}
	lack.Missing(t, lack.Seccomp, "%s", got.stderr)
}

// phx is a command that has not been started.
func phx(args ...string) *exec.Cmd {
	cmd := exec.Command(program("phx"), args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PHXFS_") })
	return cmd
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	status         int // -1: it died of a signal
	signal         syscall.Signal
}

// faults are the lines of the summary after its first.
func (o outcome) faults() []string {
	var faults []string
	for _, line := range strings.Split(o.stderr, "\n") {
		if text, ok := strings.CutPrefix(line, "phx emulate: "); ok {
			faults = append(faults, text)
		}
	}
	if len(faults) > 0 {
		faults = faults[1:]
	}
	return faults
}

// limit is after how long a command is killed; on an idle machine none takes a
// tenth of it.
const limit = 3 * time.Minute

// start runs a command to its end.
func start(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return finish(t, cmd, &stdout, &stderr)
}

func finish(t *testing.T, cmd *exec.Cmd, stdout, stderr *bytes.Buffer) outcome {
	t.Helper()
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !late.Stop() {
		t.Fatalf("%q took more than %v\nstdout %q\nstderr %q", cmd.Args, limit, stdout, stderr)
	}
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.signal = ws.Signal()
	}
	return o
}

// want fails the test unless the command ended with that status and nothing
// but these kinds of faults, in this order.
func (o outcome) want(t *testing.T, status int, faults ...string) {
	t.Helper()
	got := o.faults()
	ok := o.status == status && len(got) == len(faults)
	for i := range faults {
		ok = ok && strings.Contains(got[i], faults[i])
	}
	if !ok {
		t.Fatalf("status %d, faults %q; want %d, %q\nstdout %q\nstderr:\n%s", o.status, got, status, faults, o.stdout, o.stderr)
	}
}
