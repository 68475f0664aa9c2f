// Package need is how a test says that something is missing on this machine.
//
// Such a test is skipped with a line that names the thing, or fails if the
// environment variable PHX_REQUIRE names it ("all", or a list with commas). No
// test calls t.Skip itself (internal/archtest sees to that).
package need

import (
	"os"
	"strings"
	"testing"
)

// Thing is a word of PHX_REQUIRE.
type Thing string

// What tests are skipped for. The C suite (test/c/t.h) and the Python suite
// (test/python/need.py) have words of their own besides.
const (
	GPU      Thing = "gpu"      // a CUDA device and its driver
	IOUring  Thing = "io_uring" // rings that this process may make
	AIO      Thing = "aio"      // Linux AIO, and room under fs.aio-max-nr
	Seccomp  Thing = "seccomp"  // filters, and the supervisor of phx emulate
	ODirect  Thing = "odirect"  // a file system with O_DIRECT that minds alignment
	Compiler Thing = "compiler" // a C compiler
	Library  Thing = "library"  // build/libphoenix.so
	Terminal Thing = "terminal" // a pseudo terminal
	Tool     Thing = "tool"     // a program that a test runs
)

// Required is whether PHX_REQUIRE asks for the thing.
func Required(thing Thing) bool {
	for word := range strings.SplitSeq(os.Getenv("PHX_REQUIRE"), ",") {
		if word == string(thing) || word == "all" {
			return true
		}
	}
	return false
}

// Missing ends the test: the thing is not here. format and args say what was
// tried and what came of it.
func Missing(t testing.TB, thing Thing, format string, args ...any) {
	t.Helper()
	if Required(thing) {
		t.Fatalf("PHX_REQUIRE asks for "+string(thing)+": "+format, args...)
	}
	t.Skipf("no "+string(thing)+" here: "+format, args...)
}

// Pointless ends the test: it has nothing to say here, and nothing is missing.
func Pointless(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Skipf(format, args...)
}
