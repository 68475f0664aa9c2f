package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"libphoenix/internal/version"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the ABI, and what phx was built with and for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "phx %s\nabi  %s\ngo   %s\nos   %s/%s\n",
				version.Version, version.ABI, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return &failure{fmt.Errorf("print the version: %w", err)}
			}
			return nil
		},
	}
}
