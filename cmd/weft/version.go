package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
)

// version is the release this tree leads to; commit is set by the Makefile.
var (
	version = "0.1.0"
	commit  string
)

// readBuildInfo tells this binary from others.
func readBuildInfo() api.Build {
	b := api.Build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b.Commit == "" {
		// Built without the Makefile: the Go tool may have stamped it.
		b.Commit = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					b.Commit = s.Value[:min(12, len(s.Value))]
				}
			}
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuildInfo()
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weft %s commit %s %s %s\n", b.Version, b.Commit, b.Go, b.Platform)
			return err
		},
	}
}
