package archtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// longest is how many lines a file may have without a reason.
const longest = 400

// excused are the files that may be longer, each with its reason.
var excused = map[string]string{
	"examples/python/phoenix.py": "one file on purpose, so that a program can carry a copy of the binding",
}

// checkLength names the files that are too long, and excuses that nothing
// needs any more. lines gives the length of each file.
func checkLength(lines map[string]int, excused map[string]string) (complaints []string) {
	for _, f := range sortedKeys(lines) {
		reason, ok := excused[f]
		switch {
		case lines[f] > longest && !ok:
			complaints = append(complaints, fmt.Sprintf("%s has %d lines: split it, or give the reason in excused (%d is the most without one)", f, lines[f], longest))
		case lines[f] > longest && reason == "":
			complaints = append(complaints, fmt.Sprintf("%s is excused without a reason", f))
		}
	}
	for _, f := range sortedKeys(excused) {
		if lines[f] <= longest {
			complaints = append(complaints, fmt.Sprintf("%s is excused and has %d lines: drop the excuse", f, lines[f]))
		}
	}
	return complaints
}

func TestFilesAreShort(t *testing.T) {
	dir := root(t)
	lines := map[string]int{}
	for _, f := range tree(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		lines[f] = bytes.Count(text, []byte("\n"))
	}
	if len(lines) == 0 {
		t.Fatal("no source files found")
	}
	report(t, checkLength(lines, excused))
}

func TestLengthCheckerRefuses(t *testing.T) {
	got := checkLength(
		map[string]int{"a.go": 400, "b.go": 401, "c.go": 1000, "d.go": 90, "e.c": 500},
		map[string]string{"c.go": "a table", "d.go": "was long once", "e.c": "", "gone.go": "removed"},
	)
	expect(t, got, "b.go has 401 lines", "e.c is excused without a reason", "d.go is excused and has 90", "gone.go is excused and has 0")
}
