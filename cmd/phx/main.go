// Command phx is the tool beside the library: it says what is installed. It
// does not load the library and needs no device.
//
// Exit status: 0 done, 1 the command failed, 2 it was called wrongly; that of
// "phx emulate" is the emulated program's, see there.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"libphoenix/internal/emulator"
)

func main() {
	if emulator.IsStage(os.Args) {
		emulator.Stage(os.Args)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	var other exited
	if errors.As(err, &other) {
		return other.status
	}
	fmt.Fprintf(stderr, "phx: %v\n", err)
	var failed *failure
	if errors.As(err, &failed) {
		return 1
	}
	fmt.Fprintf(stderr, "Try 'phx --help'.\n")
	return 2
}

// failure is an error of a command that was called rightly.
type failure struct{ cause error }

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "phx",
		Short:         "Look at libphoenix and at the machine it runs on",
		Args:          cobra.NoArgs,
		SilenceErrors: true, // run prints them, once
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newVersion(), newDevices(), newEmulate())
	return root
}
