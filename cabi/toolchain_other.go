//go:build (!go1.26 || go1.27) && !phx_go_any

package main

// What a forked child may do depends on the internals of one Go runtime. The
// Makefile compares the exact version; this catches a plain `go build`.
const _ = libphoenix_is_pinned_to_the_Go_toolchain_of_go_mod_build_with_tag_phx_go_any_to_try_another
