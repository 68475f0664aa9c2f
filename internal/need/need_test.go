package need

import (
	"fmt"
	"strings"
	"testing"
)

// said is a test that remembers how it ended.
type said struct {
	testing.TB
	skipped, failed string
}

func (s *said) Helper()                      {}
func (s *said) Skipf(f string, args ...any)  { s.skipped = fmt.Sprintf(f, args...) }
func (s *said) Fatalf(f string, args ...any) { s.failed = fmt.Sprintf(f, args...); panic(s) }

func missing(s *said) {
	defer func() { _ = recover() }()
	Missing(s, IOUring, "tried %d times, 100%% %v", 3, "EPERM")
}

func TestWhatIsRequiredAndMissingFails(t *testing.T) {
	for _, require := range []string{"all", "io_uring", "gpu,io_uring", "io_uring,gpu"} {
		t.Setenv("PHX_REQUIRE", require)
		s := new(said)
		missing(s)
		if !strings.Contains(s.failed, "asks for io_uring: tried 3 times, 100% EPERM") || s.skipped != "" {
			t.Errorf("PHX_REQUIRE=%s: failed %q, skipped %q", require, s.failed, s.skipped)
		}
	}
}

func TestWhatIsNotRequiredIsSkippedByName(t *testing.T) {
	for _, require := range []string{"", "gpu", "io", "io_uring2", "allx"} {
		t.Setenv("PHX_REQUIRE", require)
		s := new(said)
		missing(s)
		if s.skipped != "no io_uring here: tried 3 times, 100% EPERM" || s.failed != "" {
			t.Errorf("PHX_REQUIRE=%s: failed %q, skipped %q", require, s.failed, s.skipped)
		}
	}
}

func TestWhatIsPointlessIsNeverMissing(t *testing.T) {
	t.Setenv("PHX_REQUIRE", "all")
	s := new(said)
	Pointless(s, "a machine with %s", "a GPU")
	if s.skipped != "a machine with a GPU" || s.failed != "" {
		t.Errorf("failed %q, skipped %q", s.failed, s.skipped)
	}
}
