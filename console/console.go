// Package console is the web console: map of the fabric, incidents and their
// causes, flows, ports, traces, probes, and the lab of a demo. It uses only the API
// of control/api and loads nothing from other hosts. The build of web is embedded in
// the binary. For users: docs/console.md.
package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the built console, with index.html at its root.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // dist is embedded
	}
	return files
}
