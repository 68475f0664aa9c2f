//go:build !race

package emulator

import (
	"os/exec"
	"testing"

	lack "libphoenix/internal/need"
)

// Each program registers in two threads and in a child, reads a file into the
// memory, and leaves one pin behind if told to.
func TestLanguages(t *testing.T) {
	need(t)
	cpp, gotool := program("tool-cpp"), program("tool-go")
	for _, c := range []struct {
		language string
		build    func() error
		command  []string
	}{
		{"C++", func() error { return compile("c++", "-std=c++20", "testdata/tool.cpp", "tool-cpp") }, []string{cpp}},
		{"Go", func() error { return build("CGO_ENABLED=0", "go", "build", "-o", gotool, "testdata/tool.go") }, []string{gotool}},
		{"Python", func() error { return build("", "cp", "testdata/tool.py", program("tool.py")) }, []string{"python3", program("tool.py")}},
	} {
		t.Run(c.language, func(t *testing.T) {
			for _, tool := range []string{"c++", "python3"} {
				if _, err := exec.LookPath(tool); err != nil {
					lack.Missing(t, lack.Tool, "%s", tool)
				}
			}
			if err := c.build(); err != nil {
				t.Fatal(err)
			}
			got := start(t, phx(append([]string{"emulate", "--strict", "--"}, c.command...)...))
			got.want(t, 0)
			if got.stdout != "fine\n" {
				t.Fatalf("stdout %q, stderr %q; want fine", got.stdout, got.stderr)
			}
			start(t, phx(append(append([]string{"emulate", "--strict", "--"}, c.command...), "forget")...)).want(t, 99, exitPinned)
		})
	}
}
