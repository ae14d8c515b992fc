package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
)

// version and commit are set by the Makefile, from the newest tag and the commit.
var version, commit string

// develVersion is the version of a binary that was built from a tree without
// tags: a development version of the next release.
const develVersion = "0.1.0-devel"

// readBuildInfo identifies this binary. What the Makefile did not set comes from
// the Go tool: the module version of "go install …@v1.2.3", the revision of a
// checkout. Pseudo-versions of an untagged tree (v0.0.0-…) say less than
// develVersion and the commit do.
func readBuildInfo() api.Build {
	b := api.Build{
		Version: version, Commit: commit, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v := info.Main.Version; b.Version == "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		b.Version = strings.TrimPrefix(v, "v")
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = s.Value[:min(12, len(s.Value))]
		}
	}
	b.Version, b.Commit = cmp.Or(b.Version, develVersion), cmp.Or(b.Commit, "unknown")
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  argumentCount(0, 0),
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
