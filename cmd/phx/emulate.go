package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"libphoenix/internal/emulator"
)

// exited ends phx with a status that is not its own.
type exited struct{ status int }

func (e exited) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func newEmulate() *cobra.Command {
	var inject []string
	var addresses string
	var strict bool
	o := emulator.Options{}
	cmd := &cobra.Command{
		Use:   "emulate [flags] [--] PROGRAM [ARGUMENT]...",
		Short: "Run a program that sees phxfs devices, without module, GPU or root",
		Long: `Run PROGRAM with its threads and children so that they see phxfs devices
/dev/phxfs_dev0.. and their sysfs files, and report what would have harmed the
kernel module or leaked device memory. See docs/emulator.md.

Rules for --inject (several: a comma between them, or the flag again)
  open|mmap|map|unmap:ERRNO:SKIP:COUNT[:DELAY]
        after SKIP calls, COUNT (-1: all) fail with ERRNO (0: they do not
        fail), DELAY (20ms) later
  revoke[:SKIP[:COUNT]]
        the driver frees the memory right after MAP

Exit status
  that of PROGRAM; if it died of a signal, phx dies of the same one
   99   --strict, and something was wrong
   77   this kernel or container cannot emulate devices
  125   the emulator failed
  126   PROGRAM cannot be executed    127   there is no PROGRAM
    2   phx was called wrongly`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, text := range inject {
				rules, err := emulator.ParseRules(text)
				if err != nil {
					return fmt.Errorf("--inject: %w", err)
				}
				o.Rules = append(o.Rules, rules...)
			}
			if o.Devices < 0 || o.Devices > emulator.MaxDevices {
				return fmt.Errorf("--devices: %d is not 0 to %d", o.Devices, emulator.MaxDevices)
			}
			if addresses != "" {
				o.Addresses = strings.Split(addresses, ",")
			}
			if len(o.Addresses) > o.Devices {
				return fmt.Errorf("--pci: %d addresses for %d devices", len(o.Addresses), o.Devices)
			}
			o.Program, o.Env, o.Stderr = args, os.Environ(), cmd.ErrOrStderr()
			o.DevDir, o.SysfsRoot = os.Getenv("PHXFS_DEV_DIR"), os.Getenv("PHXFS_SYSFS_ROOT")
			return emulate(o, strict)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows PROGRAM is its own
	flags.IntVar(&o.Devices, "devices", emulator.MaxDevices, "how many devices there are, 0 to 8")
	flags.StringVar(&addresses, "pci", "", "PCI addresses of the first devices, with commas (default 0000:00:04.0 and on)")
	flags.StringArrayVar(&inject, "inject", nil, "make calls fail or wait (see above)")
	flags.BoolVar(&o.Trace, "trace", false, "a line on stderr for each event")
	flags.BoolVar(&strict, "strict", false, "exit with 99 if anything was wrong")
	return cmd
}

// emulate runs the program and says how phx ends.
func emulate(o emulator.Options, strict bool) error {
	result, err := emulator.Run(o)
	if err != nil {
		fmt.Fprintf(o.Stderr, "phx emulate: %v\n", err)
		return exited{emulator.ExitStatus(err)}
	}
	if status := result.ExitAs(strict); status != 0 {
		return exited{status}
	}
	return nil
}
