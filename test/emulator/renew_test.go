//go:build !race

package emulator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	lack "libphoenix/internal/need"
)

// standin is a libcuda that knows one allocation at every address; its identity
// is what the program says.
const standin = `
unsigned long long phx_standin_id = 1;
int cuPointerGetAttribute(void *data, int attribute, unsigned long long addr) {
	if (attribute != 7 || !addr) return 1;
	*(unsigned long long *)data = phx_standin_id;
	return 0;
}
`

// renewing frees memory without deregmem, and registers what it gets at the
// same address: that must not be the old mapping.
const renewing = `
#include "phoenix.h"
extern unsigned long long phx_standin_id;
enum { N = 65536 };
int main(void) {
	void *const gpu = (void *)0x7f0000000000, *target = NULL;
	static char data[N] = "read into the new memory";
	int fd = open("renewed", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, N) != N) return 1;
	printf("open %d", phxfs_open(0));
	printf(" regmem %d", phxfs_regmem(0, gpu, N, &target));
	printf(" duplicate %d", phxfs_regmem(0, gpu, N, &target));
	phx_standin_id = 2;
	printf(" renewed %d", phxfs_regmem(0, gpu, N, &target));
	printf(" read %zd", phxfs_read(fd, 0, gpu, 0, N, 0));
	printf(" %s", memcmp(target, data, N) ? "nothing" : "right");
	for (int i = 0; i < 3; i++) printf(" deregmem %d", phxfs_deregmem(0, gpu, N));
	printf(" too many %d close %d\n", phxfs_deregmem(0, gpu, N), phxfs_close(0));
	return 0;
}
`

func TestRegisteringWhatLiesAtTheAddressOfFreedMemory(t *testing.T) {
	need(t)
	dir, err := filepath.Abs("../../build")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "libphoenix.so")); err != nil {
		lack.Missing(t, lack.Library, "build/libphoenix.so: make build")
	}
	sources := t.TempDir()
	for _, c := range []struct {
		source, text, name string
		flags              []string
	}{
		{"standin.c", standin, "libcuda.so.1", []string{"-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"}},
		{"renewing.c", renewing, "renewing", []string{"-L" + dir, "-l:libphoenix.so", program("libcuda.so.1"), "-Wl,-rpath," + dir + ":" + bin}},
	} {
		path := filepath.Join(sources, c.source)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := compile("cc", "-std=c11", path, c.name, c.flags...); err != nil {
			t.Fatal(err)
		}
	}
	cmd := phx("emulate", "--strict", "--trace", "--inject", "revoke:0:1", "--", program("renewing"))
	cmd.Env = append(cmd.Env, "PHXFS_VENDOR=NVIDIA")
	got := start(t, cmd)
	if want := "open 0 regmem 0 duplicate 0 renewed 0 read 65536 right deregmem 0 deregmem 0 deregmem 0 too many -1 close 0\n"; got.status != 0 || got.stdout != want {
		t.Fatalf("status %d, stdout %q, want %q\nstderr %s", got.status, got.stdout, want, got.stderr)
	}
	if !strings.Contains(got.stderr, "nothing wrong, 2 registrations") {
		t.Fatalf("want two MAPs, the old memory's and the new one's\nstderr %s", got.stderr)
	}
}
