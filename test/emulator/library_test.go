//go:build !race

package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	lack "libphoenix/internal/need"
)

// buildLibraryProgram builds testdata/library.c against build/libphoenix.so.
func buildLibraryProgram(t *testing.T) {
	t.Helper()
	dir, err := filepath.Abs("../../build")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "libphoenix.so")); err != nil {
		lack.Missing(t, lack.Library, "build/libphoenix.so: make build")
	}
	if err := compile("cc", "-std=c11", "testdata/library.c", "library", "-L"+dir, "-l:libphoenix.so", "-Wl,-rpath,"+dir, "-ldl"); err != nil {
		t.Fatal(err)
	}
}

// The library on the emulated device: it is told that it runs on NVIDIA's, and
// finds no CUDA in its process.
func TestLibrary(t *testing.T) {
	need(t)
	buildLibraryProgram(t)
	const good = "open 0 regmem 0 read 262144 batch 0 deregmem 0 close 0\n"
	const second = "open 0 regmem -14 again 0 read 262144 batch 0 deregmem 0 close 0\n"
	const held = "open 0 regmem 0 read 262144 batch 0 "
	for _, c := range []struct{ inject, arg, want string }{
		{"map:0:9:1", "", good},
		{"map:0:9:1", "exit", held},
		{"map:0:9:1", "close", held + "close 0\n"},
		{"open:EACCES:0:1", "", "open -1\n"},
		{"open:ENODEV:0:1", "", "open -1\n"},
		{"open:EMFILE:0:1", "", "open -1\n"},
		{"open:EINTR:0:-1", "", "open -1\n"}, // tried again, but not for ever
		{"mmap:ENOMEM:0:1", "", second},
		{"map:ENOMEM:0:1", "", second},
		{"map:EFAULT:0:1", "", second},
		{"map:EBUSY:0:1", "", second},
		{"map:EINVAL:0:1", "", second},
		{"unmap:EIO:0:1", "", held + "deregmem -1 read 262144 again 0 close 0\n"},
		{"open:EINTR:0:2,mmap:EINTR:0:2,map:EINTR:0:2,unmap:EINTR:0:2", "", good},
		{"unmap:EINTR:0:2", "exit", held},
		{"open:0:0:-1:2ms,mmap:0:0:-1:2ms,map:0:0:-1:2ms,unmap:0:0:-1:50ms", "", good},
		{"open:0:0:-1:2ms,mmap:0:0:-1:2ms,map:0:0:-1:2ms,unmap:0:0:-1:50ms", "exit", held},
	} {
		t.Run(c.inject+c.arg, func(t *testing.T) {
			got := start(t, library(c.inject, c.arg))
			got.want(t, 0)
			if got.stdout != c.want {
				t.Fatalf("stdout %q, want %q\nstderr %s", got.stdout, c.want, got.stderr)
			}
		})
	}
	t.Run("a program that forgets to deregister is told where and how much", func(t *testing.T) {
		// The library forgets nothing at exit: here it cannot run its handler.
		cmd := library("map:0:9:1", "killed")
		got := start(t, cmd)
		got.want(t, 99, exitPinned)
		if !strings.Contains(got.stderr, "device memory 0x7f0000000000, 262144 bytes") {
			t.Fatalf("no address and length in\n%s", got.stderr)
		}
	})
}

// library is the program under the rule; the arguments are its own.
func library(inject string, args ...string) *exec.Cmd {
	all := []string{"emulate", "--strict", "--inject", inject, "--", program("library")}
	for _, arg := range args {
		if arg != "" {
			all = append(all, arg)
		}
	}
	cmd := phx(all...)
	cmd.Env = append(cmd.Env, "PHXFS_VENDOR=NVIDIA")
	return cmd
}

// buildGPUs builds the stand-in for the vendor's library, to be preloaded.
func buildGPUs(t *testing.T) string {
	t.Helper()
	if err := compile("cc", "-std=c11", "../c/fake_gpus.c", "fake_gpus.so", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1"); err != nil {
		t.Fatal(err)
	}
	return program("fake_gpus.so")
}

// A signal handler calls exit in the midst of what makes or ends a pin: none is
// left, and none is dropped twice.
func TestExitInASignalHandlerLeavesNoPin(t *testing.T) {
	need(t)
	buildLibraryProgram(t)
	gpus := buildGPUs(t)
	for _, how := range []string{"regmem", "deregmem", "close"} {
		t.Run(how, func(t *testing.T) {
			cmd := library("map:0:0:-1:100ms", "struck-"+how)
			cmd.Env = append(cmd.Env, "PHXFS_LOG=warn", "LD_PRELOAD="+gpus)
			if got := start(t, cmd); got.status != 7 || got.stderr != "" {
				t.Fatalf("status %d, want 7, and silence; stderr:\n%s", got.status, got.stderr)
			}
		})
	}
}

// Memory that the driver has freed first is never UNMAPped, whichever way the
// registration ends and however little was freed: --strict would find it. One
// line in the log says why.
func TestMemoryFreedBeforeTheRegistrationEnds(t *testing.T) {
	need(t)
	buildLibraryProgram(t)
	gpus := buildGPUs(t)
	const held = "open 0 regmem 0 read 262144 batch 0 "
	for _, c := range []struct {
		what  string
		lines int // 0: UNMAP is due
	}{{"", 0}, {"freed-", 1}, {"chunks-", 0}, {"hole-", 1}, {"refill-", 1}} {
		for how, want := range map[string]string{"deregmem": "deregmem 0 close 0\n", "close": "close 0\n", "exit": ""} {
			t.Run(c.what+how, func(t *testing.T) {
				cmd := library("map:0:9:1", c.what+how)
				cmd.Env = append(cmd.Env, "PHXFS_LOG=warn", "LD_PRELOAD="+gpus)
				got := start(t, cmd)
				got.want(t, 0)
				call := map[string]string{"deregmem": "phxfs_deregmem", "close": "phxfs_close", "exit": "exit"}[how]
				said := strings.Contains(got.stderr, " warn call="+call+" ") && strings.Contains(got.stderr, "freed before deregmem")
				if got.stdout != held+want || strings.Count(got.stderr, "\n") != c.lines || said != (c.lines == 1) {
					t.Fatalf("stdout %q, want %q; stderr, want %d lines:\n%s", got.stdout, held+want, c.lines, got.stderr)
				}
			})
		}
	}
}

// A vendor's library that comes after regmem cannot tell what was registered:
// the pin stays, and the line says why and in which call.
func TestVendorsLibraryThatComesAfterRegmem(t *testing.T) {
	need(t)
	buildLibraryProgram(t)
	gpus := buildGPUs(t)
	for how, call := range map[string]string{"deregmem": "phxfs_deregmem", "close": "phxfs_close", "exit": "exit"} {
		t.Run(how, func(t *testing.T) {
			cmd := library("map:0:9:1", "late-"+how)
			cmd.Env = append(cmd.Env, "PHXFS_LOG=warn", "GPUS="+gpus)
			got := start(t, cmd)
			got.want(t, 99, exitPinned)
			if !strings.Contains(got.stderr, " warn call="+call+" ") || strings.Count(got.stderr, "came after regmem") != 1 || strings.Contains(got.stderr, "freed") {
				t.Fatalf("want one line of %s:\n%s", call, got.stderr)
			}
		})
	}
}
