package smallfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadGivesTheContent(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 5000, maxBytes, maxBytes + 1} {
		path := filepath.Join(t.TempDir(), "f")
		want := bytes.Repeat([]byte("x7\n"), n/3+1)[:n]
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil || !bytes.Equal(got, want[:min(n, maxBytes)]) {
			t.Errorf("file of %d bytes: got %d bytes, error %v", n, len(got), err)
		}
	}
}

func TestReadFailsWithTheErrno(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("missing file: got %v, want ENOENT", err)
	}
	if _, err := Read(dir); !errors.Is(err, unix.EISDIR) {
		t.Errorf("folder: got %v, want EISDIR", err)
	}
}
