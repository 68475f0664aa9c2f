//go:build !race

package emulator

import (
	"os"
	"path/filepath"
	"testing"

	lack "libphoenix/internal/need"
)

// The library on the emulated device: it is told that it runs on NVIDIA's, and
// finds no CUDA in its process.
func TestLibrary(t *testing.T) {
	need(t)
	dir, err := filepath.Abs("../../build")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "libphoenix.so")); err != nil {
		lack.Missing(t, lack.Library, "build/libphoenix.so: make build")
	}
	if err := compile("cc", "-std=c11", "testdata/library.c", "library", "-L"+dir, "-l:libphoenix.so", "-Wl,-rpath,"+dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, inject, arg, want string
	}{
		{"registers and reads", "map:0:9:1", "", "open 0 regmem 0 read 262144 batch 0 deregmem 0 close 0\n"},
		{"exits without closing", "map:0:9:1", "exit", "open 0 regmem 0 read 262144 batch 0 "},
		{"open fails", "open:EMFILE:0:1", "", "open -1\n"},
		{"mmap fails", "mmap:ENOMEM:0:1", "", "open 0 regmem -14 again 0 read 262144 batch 0 deregmem 0 close 0\n"},
		{"MAP fails", "map:ENOMEM:0:1", "", "open 0 regmem -14 again 0 read 262144 batch 0 deregmem 0 close 0\n"},
		{"UNMAP fails once", "unmap:EIO:0:1", "", "open 0 regmem 0 read 262144 batch 0 deregmem -1 read 262144 again 0 close 0\n"},
		{"everything is interrupted", "open:EINTR:0:2,mmap:EINTR:0:2,map:EINTR:0:2,unmap:EINTR:0:2", "", "open 0 regmem 0 read 262144 batch 0 deregmem 0 close 0\n"},
		{"UNMAP at exit is interrupted", "unmap:EINTR:0:2", "exit", "open 0 regmem 0 read 262144 batch 0 "},
		{"UNMAP is slow", "unmap:0:0:1:50ms", "", "open 0 regmem 0 read 262144 batch 0 deregmem 0 close 0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"emulate", "--strict", "--inject", c.inject, "--", program("library")}
			if c.arg != "" {
				args = append(args, c.arg)
			}
			cmd := phx(args...)
			cmd.Env = append(cmd.Env, "PHXFS_VENDOR=NVIDIA")
			got := start(t, cmd)
			got.want(t, 0)
			if got.stdout != c.want {
				t.Fatalf("stdout %q, want %q\nstderr %s", got.stdout, c.want, got.stderr)
			}
		})
	}
}
