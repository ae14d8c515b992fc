// Package console is the page that operators look at: the fabric's map,
// incidents with their causes, flows, ports, traces, probes, and the lab of a
// demo. It speaks only the API of control/api, loads nothing from elsewhere,
// and is embedded in the binary as it was built from web; docs/console.md.
package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files is the built page, with index.html at its root.
func Files() fs.FS {
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is ours
	}
	return page
}
