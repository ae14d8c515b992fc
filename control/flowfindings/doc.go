// Package flowfindings keeps what the flow analyses of a controller found, in
// bounded memory, and returns the findings of a time range. Manual:
// docs/flow-analyses.md.
package flowfindings
