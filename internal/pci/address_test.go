package pci

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestParseAcceptsEverySpellingOfAnAddress(t *testing.T) {
	cases := map[string]Address{
		"0000:65:00.0":         {Bus: 0x65},
		"0000:65:00.0\n":       {Bus: 0x65},
		"65:00.0":              {Bus: 0x65},
		"00000000:65:00.0":     {Bus: 0x65}, // NVML
		"0000:AF:1F.7":         {Bus: 0xaf, Device: 0x1f, Function: 7},
		"0000:af:1f.7":         {Bus: 0xaf, Device: 0x1f, Function: 7},
		"DEADbeef:ff:00.3":     {Domain: 0xdeadbeef, Bus: 0xff, Function: 3},
		"1:2:3.4":              {Domain: 1, Bus: 2, Device: 3, Function: 4},
		" \t0000:00:04.0 \n":   {Device: 4},
		"0001:00:00.0\x00junk": {Domain: 1},
	}
	for text, want := range cases {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseRefusesEverythingElse(t *testing.T) {
	for _, text := range []string{
		"", "0000", "65:00", "0000:65:00", "65.0", "0000:65:00.", "0000:65:00.8", "0000:65:00.00",
		"0000:65:20.0", "0000:165:00.0", "0000:65:100.0", "123456789:65:00.0", ":65:00.0", "0000::00.0",
		"0000:65:.0", "0000:0000:65:00.0", "0000:6g:00.0", "0x0:65:00.0", "-1:65:00.0", "0000:65:00.0.0",
		"0000: 65:00.0", "GPU-3b2c", "\x00", "0000:65:00,0",
	} {
		if got, err := Parse(text); !errors.Is(err, syscall.EINVAL) || got != (Address{}) {
			t.Errorf("Parse(%q) = %+v, %v; want EINVAL", text, got, err)
		}
	}
}

// FuzzParse: what Parse accepts comes back unchanged from its own spelling, in
// either case, and what it refuses carries EINVAL.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0000:65:00.0", "ffffffff:FF:1f.7\n", "65:0.1", "::.", "0:0:0.0\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if !errors.Is(err, syscall.EINVAL) {
				t.Fatalf("Parse(%q): %v carries no EINVAL", s, err)
			}
			return
		}
		for _, text := range []string{a.String(), strings.ToUpper(a.String())} {
			if b, err := Parse(text); b != a || err != nil {
				t.Fatalf("Parse(%q) = %+v; its spelling %q gives %+v, %v", s, a, text, b, err)
			}
		}
	})
}
