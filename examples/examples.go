// Package examples embeds the scenarios of this directory, for programs that run
// them without the repository.
package examples

import "embed"

// Files are the scenarios by file name.
//
//go:embed *.yaml
var Files embed.FS
