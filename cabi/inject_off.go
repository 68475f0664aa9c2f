//go:build !phx_inject

package main

// #include "bridge.h"
import "C"

import "libphoenix/engine"

// inject does nothing: only the test build panics here (inject_on.go).
func inject(int) {}

// injectedIO is the kernel.
func injectedIO() engine.IO { return nil }
