package connectorstest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"libphoenix/internal/dl/dltest"
)

// StandIn begins the C source of every stand-in library. The devices that it
// shows are the environment's, so one build serves every test: STANDIN_DEVICES
// lists their PCI addresses, in the order of ordinals and with commas between;
// STANDIN_INIT is what the function answers that starts the library.
const StandIn = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline int standin_init(void) { const char *s = getenv("STANDIN_INIT"); return s ? atoi(s) : 0; }
static inline int standin_count(void) {
	const char *s = getenv("STANDIN_DEVICES");
	int n = s && *s;
	for (; n && (s = strchr(s, ',')); s++) n++;
	return n;
}
static inline int standin_address(char *to, int len, int ordinal) { /* 0 for success */
	const char *s = getenv("STANDIN_DEVICES");
	if (ordinal < 0 || ordinal >= standin_count()) return 101;
	for (; ordinal; ordinal--) s = strchr(s, ',') + 1;
	int n = (int)strcspn(s, ",");
	return snprintf(to, (size_t)len, "%.*s", n, s) >= len;
}
`

// Library is one library of a vendor.
type Library struct {
	Name   string // file name
	Source string // C, behind StandIn; with LACKS defined it has no function Lacks
	Lacks  string
}

// Install compiles the stand-in into folder.
func (l Library) Install(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	return dltest.Build(t, folder, l.Name, StandIn+l.Source, flags...)
}

// Show lets stand-ins have devices at these PCI addresses, for the rest of the
// test.
func Show(t *testing.T, addresses ...string) {
	t.Setenv("STANDIN_DEVICES", strings.Join(addresses, ","))
}

// Announce writes an attribute of a phxfs device below a sysfs root.
func Announce(t testing.TB, sysfsRoot, device, attribute, text string) {
	t.Helper()
	folder := filepath.Join(sysfsRoot, "class/phxfs-generic", device)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, attribute), []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Want fails the test unless err carries errno and every part is in its text.
func Want(t testing.TB, err error, errno syscall.Errno, parts ...string) {
	t.Helper()
	if !errors.Is(err, errno) {
		t.Fatalf("got %v, want %v", err, errno)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("error %q does not say %q", err, part)
		}
	}
}
