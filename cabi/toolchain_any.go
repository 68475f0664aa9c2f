//go:build phx_go_any

// Nobody has checked what fork.c and image.c rely on against this toolchain.

package main

// #cgo CFLAGS: -DPHX_FORK_CLOSED
import "C"
