// Package examples holds the scenarios of this folder, for who plays them
// without the repository at hand.
package examples

import "embed"

// Files are the scenarios by file name.
//
//go:embed *.yaml
var Files embed.FS
