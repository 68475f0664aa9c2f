package threeway

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"libphoenix/internal/need"
)

// hungAfter is when a batch counts as hung. It decides nothing else: these
// machines are shared, and a minute is nothing to them.
const hungAfter = 2 * time.Minute

// checksAtOnce is how many batches one rapid.Check draws. It is called until
// enough requests are made.
const checksAtOnce = 1

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(serveVariable); ok {
		os.Exit(serve(dir))
	}
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.checks":     strconv.Itoa(checksAtOnce),
		"rapid.nofailfile": "true", // the seed, which is printed, is enough
		"rapid.shrinktime": "10s",
	} {
		if !given[name] {
			_ = flag.Set(name, value)
		}
	}
	debug.SetTraceback("all") // for hungAfter
	goleak.VerifyTestMain(m)
}

// requests is how many random requests the whole run makes, at least.
func requests(t *testing.T) int {
	t.Helper()
	value, ok := os.LookupEnv("PHX_THREEWAY")
	if !ok {
		return 4000
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("PHX_THREEWAY is a number of requests, not %q", value)
	}
	return n
}

// lack is why a target cannot be had. word is what PHX_REQUIRE calls it.
type lack struct {
	word string
	why  error
}

// skip ends the test: something is missing.
func skip(t *testing.T, l *lack) {
	t.Helper()
	need.Missing(t, need.Thing(l.word), "%v", l.why)
}
