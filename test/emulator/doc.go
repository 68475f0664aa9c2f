//go:build !race

// Package emulator holds the tests of "phx emulate" as its users see it: the
// built phx runs unmodified programs of testdata, and the tests look at what
// those saw, at the summary and at the exit status. They need a C compiler and
// a kernel that lets a process watch another's system calls; without either
// they are skipped, and PHX_REQUIRE=seccomp (or all) turns the second skip
// into a failure. Not with the race detector, which sees nothing of other
// programs; internal/emulator has tests for that.
package emulator
