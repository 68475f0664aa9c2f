package amd

import (
	"os"
	"os/exec"
	"testing"

	"libphoenix/connectors"
	"libphoenix/internal/dl"
	"libphoenix/internal/dl/dltest"
)

// memory is a stand-in runtime whose one allocation, 4 MiB, is at 0x10000000; it
// stores a 32-bit id, the narrower of the two that are possible.
const memory = `
#include <stdlib.h>
int hipPointerGetAttribute(void *data, int attribute, void *addr) {
	const char *id = getenv("HIP_STANDIN_ID");
	if (attribute != 7) return 801;
	if (!id || (unsigned long)addr < 0x10000000 || (unsigned long)addr >= 0x10400000) return 1;
	*(unsigned *)data = strtoul(id, 0, 0);
	return 0;
}
`

// alone runs the test named like t in a process of its own: the runtime that
// was seen once stays for good. It is true in that process.
func alone(t *testing.T) bool {
	if os.Getenv("PHX_TEST_ALONE") == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	// Libraries that the test puts there could be loaded by their bare names.
	cmd.Env = append(os.Environ(), "PHX_TEST_ALONE="+t.Name(), "LD_LIBRARY_PATH="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func TestIdentityIsAskedOfEveryVersionOfTheRuntime(t *testing.T) {
	for _, name := range []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"} {
		t.Run(name, func(t *testing.T) {
			if !alone(t) {
				return
			}
			c := New(Config{})
			lib := dltest.Build(t, os.Getenv("LD_LIBRARY_PATH"), name, memory)
			if id, state := c.Identity(0x10000000, 65536); id != 0 || state != connectors.LifeUnasked {
				t.Fatalf("no runtime in the process: %d, state %d", id, state)
			}
			if _, err := dl.Open(lib); err != nil {
				t.Fatal(err)
			}
			t.Setenv("HIP_STANDIN_ID", "0xfffffff1")
			if id, state := c.Identity(0x10000000, 65536); id != 0xfffffff1 || state != connectors.LifeKnown {
				t.Errorf("alive: %#x, state %d", id, state)
			}
			first, _ := c.Identity(0x10000000, 65536)
			if id, state := c.Identity(0x10000000, 4<<20); id == first || state != connectors.LifeKnown {
				t.Errorf("all of it: %#x, state %d; want not the first piece's alone", id, state)
			}
			if id, state := c.Identity(0x10000000, 4<<20+1); id != 0 || state != connectors.LifeGone {
				t.Errorf("one byte more: %#x, state %d", id, state)
			}
			os.Unsetenv("HIP_STANDIN_ID")
			if id, state := c.Identity(0x10000000, 65536); id != 0 || state != connectors.LifeGone {
				t.Errorf("freed: %d, state %d", id, state)
			}
		})
	}
}

func TestRuntimeThatCannotBeAskedCountsAsGone(t *testing.T) {
	if !alone(t) {
		return
	}
	if _, err := dl.Open(dltest.Build(t, t.TempDir(), "libamdhip64.so.6", "int unused;")); err != nil {
		t.Fatal(err)
	}
	if id, state := New(Config{}).Identity(0x10000000, 65536); id != 0 || state != connectors.LifeGone {
		t.Fatalf("got %d, state %d; want state %d", id, state, connectors.LifeGone)
	}
	if New(Config{}).IdentityFunc() == 0 {
		t.Fatal("no C address")
	}
}
