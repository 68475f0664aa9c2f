package dl

import (
	"fmt"
	"strings"
	"syscall"
)

// MissingLibraryError says that none of Names could be loaded.
type MissingLibraryError struct {
	Names      []string
	Reasons    []string // the loader's words, one for each name
	OnlyLoaded bool     // it was to be in the process already
}

func (e *MissingLibraryError) Error() string {
	if e.OnlyLoaded {
		return fmt.Sprintf("vendor library %s is not loaded in this process", strings.Join(e.Names, " or "))
	}
	return fmt.Sprintf("cannot load vendor library %s: %s", strings.Join(e.Names, " or "), strings.Join(e.Reasons, "; "))
}

// Unwrap is ENODEV.
func (e *MissingLibraryError) Unwrap() error { return syscall.ENODEV }

// MissingSymbolError says that a library was loaded but lacks a function: it
// is too old, too new, or not what its name promises.
type MissingSymbolError struct {
	Library, Symbol string
	Reason          string // the loader's words
}

func (e *MissingSymbolError) Error() string {
	return fmt.Sprintf("vendor library %s has no function %s: %s", e.Library, e.Symbol, e.Reason)
}

// Unwrap is ENODEV.
func (e *MissingSymbolError) Unwrap() error { return syscall.ENODEV }

// CallError says that a function of a library was called and failed.
type CallError struct {
	Library, Call string
	Code          int32  // the vendor's
	Text          string // the vendor's explanation, or ""
}

func (e *CallError) Error() string {
	text := e.Text
	if text != "" {
		text = " (" + text + ")"
	}
	return fmt.Sprintf("%s of %s failed with code %d%s", e.Call, e.Library, e.Code, text)
}

// Unwrap is ENODEV.
func (e *CallError) Unwrap() error { return syscall.ENODEV }

// Failed makes the error of a call into l; text may be "".
func (l *Library) Failed(call string, code int32, text string) error {
	return &CallError{Library: l.name, Call: call, Code: code, Text: text}
}
