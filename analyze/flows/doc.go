// Package flows turns the flowsets of many switches into flow records: it
// reassembles chunks, decodes each flowset by itself, then together with its
// neighbours', and grades every count. Paths, loops and losses are derived from
// the records by analyze/paths, analyze/loss and analyze/load.
// Origin: docs/papers.md#flowradar. Layout: docs/formats/flowset.md.
package flows
