package emulator

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRulesAreRead(t *testing.T) {
	for text, want := range map[string][]Rule{
		"map:ENOMEM:0:1":            {{"map", unix.ENOMEM, 0, 1, 0}},
		"unmap:0:2:-1:20ms":         {{"unmap", 0, 2, -1, 20 * time.Millisecond}},
		"open:EMFILE:1:2,revoke":    {{"open", unix.EMFILE, 1, 2, 0}, {"revoke", 0, 0, -1, 0}},
		"revoke:3,mmap:EACCES:0:-1": {{"revoke", 0, 3, -1, 0}, {"mmap", unix.EACCES, 0, -1, 0}},
		"revoke:3:1":                {{"revoke", 0, 3, 1, 0}},
	} {
		if got, err := ParseRules(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "map", "map:ENOMEM", "map:ENOMEM:0", "map:ENOMEM:0:1:1s:x", "map:NOPE:0:1", "map:5:0:1", "map:ENOMEM:-1:1",
		"map:ENOMEM:0:-2", "map:ENOMEM:x:1", "map:ENOMEM:0:1:soon", "map:ENOMEM:0:1:-1s", "close:EIO:0:1", "revoke:-1", "revoke:0:1:2", "map:ENOMEM:0:1,",
	} {
		if got, err := ParseRules(text); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%q: %v, %v; want EINVAL", text, got, err)
		}
	}
}

func TestRulesCountCalls(t *testing.T) {
	rules, err := ParseRules("map:ENOMEM:1:2,map:EBUSY:2:2,unmap:EIO:0:-1")
	if err != nil {
		t.Fatal(err)
	}
	var i injector
	i.add(rules)
	for call, want := range []error{nil, unix.ENOMEM, unix.ENOMEM, unix.EBUSY, nil} {
		r, ok := i.next("map")
		if ok != (want != nil) || ok && r.Errno != want {
			t.Errorf("map %d: %v, %v; want %v", call, r.Errno, ok, want)
		}
	}
	if r, ok := i.next("unmap"); !ok || r.Errno != unix.EIO {
		t.Errorf("unmap: %v, %v; want EIO", r.Errno, ok)
	}
	i.clear()
	if _, ok := i.next("unmap"); ok {
		t.Error("a cleared rule applies")
	}
}
