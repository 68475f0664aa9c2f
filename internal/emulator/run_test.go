package emulator

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"libphoenix/internal/need"
)

// asOld in the environment makes the test binary run its arguments in the
// emulator, as on Linux 5.14, and fail if a goroutine is left.
const asOld = "PHX_TEST_RUN_AS_OLD"

func TestMain(m *testing.M) {
	if IsStage(os.Args) {
		Stage(os.Args)
	}
	if os.Getenv(asOld) != "" {
		os.Exit(runAsOld(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func runAsOld(program []string) int {
	rules, err := ParseRules("map:0:0:-1:1ms") // time for signals to come between
	if err != nil {
		panic(err)
	}
	result, err := Run(Options{Devices: MaxDevices, Rules: rules, Program: program, Env: os.Environ(), Stderr: os.Stderr, old: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitStatus(err)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return result.ExitAs(true)
}

// On old kernels a signal takes a call back that is being answered, and the
// call is made again: what was done for it must be undone.
func TestOldKernels(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		need.Missing(t, need.Compiler, "cc")
	}
	dir := t.TempDir()
	for source, cases := range map[string][]string{
		"threads": {"at_the_same_time", "with_signals", "failing_mmaps_do_not_hold_others_up", "exit_with_requests_pending"},
		"storm":   {"opens_in_a_storm"},
		"release": {"unmap_then_munmap", "exit_pinned", "unmap_twice", "revoked_by_command"},
	} {
		program := filepath.Join(dir, source)
		build := exec.Command("cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-pthread", "-I../../include", "-o", program, "../../test/emulator/testdata/"+source+".c")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, name := range cases {
			t.Run(name, func(t *testing.T) {
				cmd := exec.Command("/proc/self/exe", program, name)
				cmd.Env = append(os.Environ(), asOld+"=1")
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				err := cmd.Run()
				status := 0
				if exit := new(exec.ExitError); errors.As(err, &exit) {
					status = exit.ExitCode()
				}
				want, fault := 0, ""
				switch name {
				case "exit_pinned":
					want, fault = ExitWrong, ExitPinned.String()
				case "unmap_twice":
					want, fault = ExitWrong, UnmapTwice.String()
				}
				if status == ExitUnable {
					need.Missing(t, need.Seccomp, "%s", &stderr)
				}
				if status != want || !strings.Contains(stderr.String(), fault) {
					t.Fatalf("status %d, want %d and %q\n%s", status, want, fault, &stderr)
				}
			})
		}
	}
}
