// Package archtest holds the tests that keep the house as drawn
// (docs/architecture.md): who may import whom, where cgo and C may live, what
// the shared library may depend on, that no package keeps mutable state, and
// how long a file may be. It has no code of its own.
//
// What exists is what "go list" reports, so a package is checked from the
// moment it is written, and one without a rule is an error, not an exception.
// Each checker is a function over plain data; beside the test of the house
// stands a table test that shows it refusing made-up packages.
//
// The tests read every file they judge themselves, so that "go test" notices
// when one changes and does not answer from its cache.
package archtest
