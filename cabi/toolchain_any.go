//go:build phx_go_any

package main

// Nobody has checked what fork.c and image.c rely on against this toolchain.
// #cgo CFLAGS: -DPHX_FORK_CLOSED
import "C"
