package statemachine

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.checks":     "1", // check calls it again and again
		"rapid.steps":      "100",
		"rapid.nofailfile": "true", // the seed, which is printed, is enough
		"rapid.shrinktime": "10s",
	} {
		if !given[name] {
			_ = flag.Set(name, value)
		}
	}
	goleak.VerifyTestMain(m)
}

// soak is for how long each test goes on; 0: the short run of CI.
func soak(t *testing.T) time.Duration {
	t.Helper()
	value, ok := os.LookupEnv("PHX_SOAK_SECONDS")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("PHX_SOAK_SECONDS is a number of seconds, not %q", value)
	}
	return time.Duration(n) * time.Second
}

// rounds calls f at least n times, or for as long as the soak goes on.
func rounds(t *testing.T, n int, f func()) {
	begin, long := time.Now(), soak(t)
	done := 0
	for ; !t.Failed() && (long == 0 && done < n || time.Since(begin) < long); done++ {
		f()
	}
	t.Logf("%d rounds", done)
}

// check is rapid.Check with about n random cases.
func check(t *testing.T, n int, property func(*rapid.T)) {
	rounds(t, n, func() { rapid.Check(t, property) })
}
