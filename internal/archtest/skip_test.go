package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// skipping finds tests that skip by themselves, by file ending; the places that
// do it for everybody are excepted.
var skipping = map[string]*regexp.Regexp{
	".go": regexp.MustCompile(`\.(Skip|Skipf|SkipNow)\(`),
	".py": regexp.MustCompile(`pytest\.(skip|importorskip|mark\.skip|mark\.skipif)\b|unittest\.skip|raise .*\bSkipTest`),
}

var skippers = []string{"internal/need/...", "test/python/need.py"}

func checkSkips(name, text string) (complaints []string) {
	pattern := skipping[filepath.Ext(name)]
	if pattern == nil || underAny(name, skippers) {
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		if pattern.MatchString(line) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: skips by itself; internal/need and test/python/need.py heed PHX_REQUIRE", name, i+1))
		}
	}
	return complaints
}

func TestSkipsSayWhatIsMissingAndHeedPHXREQUIRE(t *testing.T) {
	dir := root(t)
	for _, f := range tree(t, dir) {
		if under(f, "internal/archtest/...") {
			continue // its own examples
		}
		text, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkSkips(f, string(text)))
	}
}

func TestSkipCheckerRefuses(t *testing.T) {
	expect(t, checkSkips("core/a_test.go", "package core\n\tt.Skip(\"x\")\n\tb.Skipf(\"x\")\n"), "a_test.go:2", "a_test.go:3")
	expect(t, checkSkips("internal/need/need.go", "t.Skipf("))
	expect(t, checkSkips("test/python/test_x.py", "pytest.skip('x')\n@pytest.mark.skipif(True)\n"), "test_x.py:1", "test_x.py:2")
	expect(t, checkSkips("test/python/need.py", "pytest.skip('x')"))
	expect(t, checkSkips("core/a.go", "r.Skipped = true; reader.Skipper()"))
}
