package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// call runs phx inside the test.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestVersionSaysWhatIsInstalled(t *testing.T) {
	status, stdout, stderr := call("version")
	want := "phx 0.1.0\nabi  libphoenix.so\ngo   " + runtime.Version() + "\nos   " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if status != 0 || stdout != want || stderr != "" {
		t.Fatalf("status %d, stdout %q, stderr %q; want 0, %q, nothing", status, stdout, stderr, want)
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"-h"}, {"help"}} {
		status, stdout, stderr := call(args...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "version") || !strings.Contains(stdout, "Usage:") {
			t.Errorf("phx %q: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
	if status, stdout, _ := call("version", "--help"); status != 0 || !strings.Contains(stdout, "ABI") {
		t.Errorf("phx version --help: status %d, stdout %q", status, stdout)
	}
}

func TestWrongCallsAreStatusTwoAndSayWhy(t *testing.T) {
	for _, args := range [][]string{{"vresion"}, {"--no-such-flag"}, {"version", "now"}, {"version", "--no-such-flag"}} {
		status, stdout, stderr := call(args...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "phx: ") || !strings.Contains(stderr, "--help") {
			t.Errorf("phx %q: status %d, stdout %q, stderr %q; want 2 and a hint", args, status, stdout, stderr)
		}
		if strings.Count(stderr, "phx: ") != 1 {
			t.Errorf("phx %q says it more than once: %q", args, stderr)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestOutputThatCannotBeWrittenIsStatusOne(t *testing.T) {
	var errs bytes.Buffer
	if status := run([]string{"version"}, full{}, &errs); status != 1 || !strings.Contains(errs.String(), "disk full") {
		t.Fatalf("status %d, stderr %q; want 1 and the reason", status, errs.String())
	}
	if status := run([]string{"version"}, io.Discard, io.Discard); status != 0 {
		t.Fatalf("status %d, want 0", status)
	}
}

func TestBuiltProgramRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "phx")
	build := exec.Command("go", "build", "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "phx 0.1.0\n") {
		t.Fatalf("%v, output %q", err, out)
	}
	var exit *exec.ExitError
	if err := exec.Command(path, "nonsense").Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Fatalf("phx nonsense: %v, want exit status 2", err)
	}
}
