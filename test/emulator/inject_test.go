//go:build !race

package emulator

import (
	"strings"
	"testing"
	"time"
)

// The program tries three times and prints what each step said; a step that
// fails ends its round.
func TestInjectedFailures(t *testing.T) {
	need(t)
	const good = "open ok mmap ok map ok unmap ok"
	for _, c := range []struct {
		rules string
		want  []string
	}{
		{"open:EACCES:0:1", []string{"open EACCES", good, good}},
		{"open:ENODEV:1:1", []string{good, "open ENODEV", good}},
		{"open:EMFILE:0:-1", []string{"open EMFILE", "open EMFILE", "open EMFILE"}},
		{"mmap:ENOMEM:0:1", []string{"open ok mmap ENOMEM", good, good}},
		{"map:ENOMEM:0:1,map:EFAULT:1:1,map:EBUSY:2:1", []string{"open ok mmap ok map ENOMEM", "open ok mmap ok map EFAULT", "open ok mmap ok map EBUSY"}},
		{"map:EINVAL:2:5", []string{good, good, "open ok mmap ok map EINVAL"}},
		{"unmap:EIO:0:1", []string{"open ok mmap ok map ok unmap EIO unmap ok", good, good}},
		{"unmap:0:0:-1", []string{good, good, good}},
	} {
		t.Run(c.rules, func(t *testing.T) {
			got := start(t, phx("emulate", "--strict", "--inject", c.rules, "--", program("inject")))
			if want := strings.Join(c.want, "\n") + "\n"; got.stdout != want || got.status != 0 {
				t.Fatalf("status %d, stdout\n%s\nwant\n%s\nstderr %s", got.status, got.stdout, want, got.stderr)
			}
		})
	}
}

func TestDelayIsWaited(t *testing.T) {
	need(t)
	const delay = 30 * time.Millisecond
	begin := time.Now()
	got := start(t, phx("emulate", "--inject", "unmap:0:0:2:30ms", "--inject", "map:0:0:1:30ms", "--", program("inject")))
	if took := time.Since(begin); got.status != 0 || took < 3*delay {
		t.Fatalf("status %d after %v; want 0 and at least %v\n%s", got.status, took, 3*delay, got.stderr)
	}
}

func TestMalformedRulesAreRefused(t *testing.T) {
	for _, args := range []string{"--inject map", "--inject map:ENOSUCH:0:1", "--inject close:EIO:0:1", "--devices 9", "--devices 1 --pci a,b"} {
		got := start(t, phx(append(append([]string{"emulate"}, strings.Fields(args)...), "--", "true")...))
		if got.status != 2 || got.stdout != "" {
			t.Errorf("%s: status %d, stdout %q; want 2 and nothing\n%s", args, got.status, got.stdout, got.stderr)
		}
	}
	if got := start(t, phx("emulate")); got.status != 2 {
		t.Errorf("no program: status %d, want 2", got.status)
	}
}
