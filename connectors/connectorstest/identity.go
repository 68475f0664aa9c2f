package connectorstest

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
	"libphoenix/internal/need"
)

// Identity is how a vendor's identity of memory is tested.
type Identity struct {
	Libraries []string // each name under which the library is looked for in the process
	Function  string   // that has the identities
}

// memory stands in for a library with one allocation of 4 MiB at 0x10000000,
// whose identity STANDIN_ID gives (none: freed).
const memory = `
#include <stdlib.h>
#include <errno.h>
#ifdef QUESTION
int QUESTION(void *data, int attribute, unsigned long long addr) {
	const char *id = getenv("STANDIN_ID");
	errno = 77;
	if (attribute != 7) return 801;
	if (!id || addr < 0x10000000 || addr >= 0x10400000) return 1;
	*(unsigned long long *)data = strtoull(id, 0, 0);
	return 0;
}
#endif
int unused;
`

// Alone runs the test named like t in a process of its own: a library that was
// seen once stays for good. It is true in that process.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv("PHX_TEST_ALONE") == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	// Libraries that the test puts there could be loaded by their bare names.
	cmd.Env = append(os.Environ(), "PHX_TEST_ALONE="+t.Name(), "LD_LIBRARY_PATH="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if bytes.Contains(out, []byte("--- SKIP: "+t.Name())) {
		need.Pointless(t, "the child's:\n%s", out)
	}
	return false
}

// RunIdentity takes memory through its life, in a process for each name of the
// library. A test of its own calls it.
func RunIdentity(t *testing.T, v Vendor, question Identity) {
	for _, name := range question.Libraries {
		t.Run(name, func(t *testing.T) {
			if Alone(t) {
				v.identity(t, name, "-DQUESTION="+question.Function)
			}
		})
	}
}

func (v Vendor) identity(t *testing.T, name, question string) {
	c := v.New(t.TempDir(), t.TempDir()).(connectors.Liveness)
	if c.IdentityFunc() == 0 {
		t.Fatal("no C function")
	}
	const at = 0x10000000
	ask := func(when string, addr connectors.DevAddr, wantID uint64, want connectors.LifeState) {
		t.Helper()
		if id, state := c.Identity(addr, 1); id != wantID || state != want {
			t.Errorf("%s: Identity(%#x) = %#x, state %d; want %#x, state %d", when, addr, id, state, wantID, want)
		}
	}
	os.Unsetenv("STANDIN_ID")
	// Here it could be loaded by its name, which nobody asked for.
	library := dltest.Build(t, os.Getenv("LD_LIBRARY_PATH"), name, memory, question)
	ask("no library in the process", at, 0, connectors.LifeUnasked)
	mute, err := dl.Open(dltest.Build(t, t.TempDir(), name, memory))
	if err != nil {
		t.Fatal(err)
	}
	ask("a library that cannot be asked", at, 0, connectors.LifeGone)
	if err := mute.Close(); err != nil {
		t.Fatal(err)
	}
	ask("that library unloaded again", at, 0, connectors.LifeUnasked)

	lib, err := dl.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	ask("not allocated yet", at, 0, connectors.LifeGone)
	t.Setenv("STANDIN_ID", "0x1200000034")
	ask("first byte", at, 0x1200000034, connectors.LifeKnown)
	ask("last byte", at+4<<20-1, 0x1200000034, connectors.LifeKnown)
	ask("behind the end", at+4<<20, 0, connectors.LifeGone)
	if id, state := c.Identity(at, 4<<20); id == 0x1200000034 || state != connectors.LifeKnown {
		t.Errorf("all of it: %#x, state %d; want not the first piece's alone", id, state)
	}
	if id, state := c.Identity(at, 4<<20+1); id != 0 || state != connectors.LifeGone {
		t.Errorf("one byte more: %#x, state %d", id, state)
	}
	t.Setenv("STANDIN_ID", "53")
	ask("another allocation at the same address", at, 53, connectors.LifeKnown)
	os.Unsetenv("STANDIN_ID")
	ask("freed", at, 0, connectors.LifeGone)
	t.Setenv("STANDIN_ID", "54")
	if got := testing.AllocsPerRun(100, func() { c.Identity(at, 4<<20) }); got != 0 {
		t.Errorf("%v allocations per question, want 0", got)
	}
	if err := lib.Close(); err != nil {
		t.Fatal(err)
	}
	ask("after the application closed the library", at, 54, connectors.LifeKnown)
}
