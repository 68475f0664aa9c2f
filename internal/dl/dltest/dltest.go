// Package dltest makes stand-ins for vendor libraries, and small C programs
// that use a connector's C code, for tests only: a few lines of C, compiled
// while the test runs. A connector opens a stand-in by its full path.
package dltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"libphoenix/internal/need"
)

// Build compiles C source into dir/name, a shared object with SONAME name, and
// returns its path. flags go to the compiler (-DNO_INIT and the like).
func Build(t testing.TB, dir, name, source string, flags ...string) string {
	t.Helper()
	return compile(t, dir, name, source, append([]string{"-shared", "-fPIC", "-Wl,-soname," + name}, flags...))
}

// Program compiles C source into the program dir/name and returns its path.
// flags may name further source files.
func Program(t testing.TB, dir, name, source string, flags ...string) string {
	t.Helper()
	return compile(t, dir, name, source, append(flags, "-pthread", "-ldl"))
}

// compile fails the test where the compiler refuses, and skips it where there
// is none.
func compile(t testing.TB, dir, name, source string, flags []string) string {
	t.Helper()
	compiler := ""
	for _, c := range []string{"gcc", "cc", "clang"} {
		if path, err := exec.LookPath(c); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		need.Missing(t, need.Compiler, "gcc, cc or clang, to make a stand-in vendor library with")
	}
	// A name of its own, so several builds can share a folder.
	src := filepath.Join(t.TempDir(), "source.c")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	args := append([]string{"-Wall", "-Wextra", "-Werror", "-o", path, src}, flags...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, out)
	}
	return path
}
