package dl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"libphoenix/internal/dl/dltest"
)

const source = `
#include <string.h>
int none(void) { return 41; }
int u(unsigned a) { return a == 0xfffffffeu ? 1 : -1; }
int p(int *a) { *a = 7; return -2; }
int pi(int *a, int b) { *a = b; return b < 0; }
int ip(int a, int *b) { *b = a - 1; return 0; }
int up(unsigned a, unsigned *b) { *b = a + 1; return 0; }
int pii(char *a, int b, int c) { memset(a, 'a' + c, b - 1); a[b - 1] = 0; return b + c; }
int ppu(int *a, int *b, unsigned c) { *a = c / 10; *b = c % 10; return 0; }
int iip(int a, int b, long *c) { *c = 1000L * a + b; return 3; }
int i(int a) { return a - 1; }
int pu(unsigned *a, unsigned b) { *a = b; return 0; }
int piw(unsigned long *a, int b, unsigned long c) { *a = c + b; return 0; }
int pwu(unsigned long *a, unsigned long b, unsigned c) { *a = b * c; return 0; }
int w(unsigned long a) { return a == 0xfffffffffffffffeul ? 5 : -5; }
int ww(unsigned long a, unsigned long b) { return a == ~0ul && b == 1ul << 40 ? 6 : -6; }
int wwww(unsigned long a, void *b, unsigned long c, void *d) { return a == 1ul << 60 && (unsigned long)b == 1ul << 50 && c == 1ul << 40 && (unsigned long)d == 1ul << 47 ? 7 : -7; }
const char *text_i(int a) { return a ? "some text" : 0; }
int text_ip(int a, const char **t) { *t = a > 1 ? "other text" : 0; return a == 3; }
`

func TestMissingLibraryNamesEveryAttempt(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libtext.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open("libphx-no-such.so.9", text, "", "a\x00b")
	var missing *MissingLibraryError
	if !errors.As(err, &missing) || !errors.Is(err, syscall.ENODEV) {
		t.Fatalf("got %v, want a MissingLibraryError with ENODEV", err)
	}
	if len(missing.Reasons) != 4 {
		t.Fatalf("%d reasons for 4 names: %q", len(missing.Reasons), missing.Reasons)
	}
	for _, part := range []string{"cannot load", "libphx-no-such.so.9", "libtext.so", "no library name"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestTheThreeFailuresReadDifferently(t *testing.T) {
	path := dltest.Build(t, t.TempDir(), "libphx1.so", source)
	_, noLibrary := Open(path + ".9")
	lib, err := Open("libphx-no-such.so", path) // the second name is taken
	if err != nil || lib.Name() != path {
		t.Fatalf("Open = %v, %v", lib, err)
	}
	defer lib.Close()
	_, noSymbol := lib.Symbol("nowhere")
	failed := lib.Failed("none", 41, "because")
	var symbol *MissingSymbolError
	if !errors.As(noSymbol, &symbol) || symbol.Symbol != "nowhere" || symbol.Library != path {
		t.Errorf("got %v, want a MissingSymbolError", noSymbol)
	}
	for err, part := range map[error]string{
		noLibrary: "cannot load vendor library",
		noSymbol:  "has no function nowhere",
		failed:    "none of " + path + " failed with code 41 (because)",
	} {
		if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), part) {
			t.Errorf("error %q: want ENODEV and %q", err, part)
		}
	}
}

func TestOpenLoadedLoadsNothing(t *testing.T) {
	path := dltest.Build(t, t.TempDir(), "libphx2.so", source)
	if _, err := OpenLoaded(path); !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "not loaded") {
		t.Fatalf("before the library is there: %v", err)
	}
	lib, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenLoaded("libphx2.so") // by SONAME, wherever it came from
	if err != nil {
		t.Fatalf("OpenLoaded: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lib.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLoaded(path); err == nil {
		t.Fatal("still loaded after the last Close")
	}
	if err := lib.Close(); !errors.Is(err, syscall.EINVAL) {
		t.Fatalf("second Close: %v, want EINVAL", err)
	}
}

func TestBindStopsAtARequiredFunctionOnly(t *testing.T) {
	lib, err := Open(dltest.Build(t, t.TempDir(), "libphx3.so", source))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	none, optional := Func(0), Func(1)
	if err := lib.Bind(Sym{Name: "none", Into: &none}, Sym{Name: "absent", Into: &optional, Optional: true}); err != nil {
		t.Fatal(err)
	}
	if none == 0 || optional != 0 {
		t.Fatalf("bound %#x, %#x; want a function and 0", none, optional)
	}
	if err := lib.Bind(Sym{Name: "absent", Into: &optional}); !errors.Is(err, syscall.ENODEV) {
		t.Fatalf("missing function: %v, want ENODEV", err)
	}
}

func TestEveryTrampolinePassesItsArguments(t *testing.T) {
	lib, err := Open(dltest.Build(t, t.TempDir(), "libphx4.so", source))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	f := func(name string) Func {
		f, err := lib.Symbol(name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	check := func(name string, ok bool) {
		if !ok {
			t.Errorf("%s: wrong arguments or result", name)
		}
	}
	var a, b int32
	var u uint32
	var l int64
	check("none", f("none").Call() == 41)
	check("u", f("u").CallU(0xfffffffe) == 1)
	check("p", f("p").CallP(unsafe.Pointer(&a)) == -2 && a == 7)
	check("pi", f("pi").CallPI(unsafe.Pointer(&a), -9) == 1 && a == -9)
	check("ip", f("ip").CallIP(-4, unsafe.Pointer(&a)) == 0 && a == -5)
	check("up", f("up").CallUP(1<<31, unsafe.Pointer(&u)) == 0 && u == 1<<31+1)
	text := make([]byte, 8)
	check("pii", f("pii").CallPII(unsafe.Pointer(&text[0]), 8, 2) == 10 && string(text) == "ccccccc\x00")
	check("ppu", f("ppu").CallPPU(unsafe.Pointer(&a), unsafe.Pointer(&b), 42) == 0 && a == 4 && b == 2)
	check("iip", f("iip").CallIIP(5, 6, unsafe.Pointer(&l)) == 3 && l == 5006)
	var word uintptr
	check("i", f("i").CallI(-7) == -8)
	check("pu", f("pu").CallPU(unsafe.Pointer(&u), 1<<31+3) == 0 && u == 1<<31+3)
	check("piw", f("piw").CallPIW(unsafe.Pointer(&word), -2, 1<<40) == 0 && word == 1<<40-2)
	check("pwu", f("pwu").CallPWU(unsafe.Pointer(&word), 1<<40, 3) == 0 && word == 3<<40)
	check("w", f("w").CallW(^uintptr(1)) == 5)
	check("ww", f("ww").CallWW(^uintptr(0), 1<<40) == 6)
	check("wwww", f("wwww").CallWWWW(1<<60, 1<<50, 1<<40, 1<<47) == 7)
	check("text_i", f("text_i").TextI(1) == "some text" && f("text_i").TextI(0) == "")
	check("text_ip", f("text_ip").TextIP(2) == "other text" && f("text_ip").TextIP(1) == "" && f("text_ip").TextIP(3) == "")
}

func TestReasonsBelongToTheirOwnCall(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := "libphx-absent-" + string(rune('a'+i)) + ".so"
			for range 200 {
				if _, err := Open(name); err == nil || strings.Count(err.Error(), name) != 2 {
					t.Errorf("opening %s: %v; want the loader's words about it", name, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
