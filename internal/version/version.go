// Package version holds the version of the library and its tools, in one
// place. It follows semver; the C ABI has a version of its own, the SONAME.
package version

const (
	// Version is what CHANGELOG.md describes at its top.
	Version = "0.1.0"

	// ABI is the SONAME: binaries that name it run on any build that has it.
	ABI = "libphoenix.so"
)
