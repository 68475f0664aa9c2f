//go:build !(linux && (amd64 || arm64))

package main

// libphoenix builds for Linux on amd64 and arm64 (LP64, little-endian) only.
const _ = libphoenix_builds_for_Linux_LP64_little_endian_amd64_and_arm64_only
