// Package peer holds what the FlowRadar paper compares encoded flowsets with:
// d-left hash tables, invertible Bloom lookup tables, NetFlow on a perfect hash,
// and a counting table that doubles as filter. They are built as well as the
// paper describes them, so that comparisons are fair; none is part of Weft's
// telemetry. Origin: docs/papers.md#flowradar.
package peer

// Sizes of the paper's fields in bytes: what NetFlow and d-left keep per flow.
const (
	KeyBytes       = 13
	CounterBytes   = 4
	TimestampBytes = 4
)
