// Package region is the memory that reports are written into: a mapping, of a
// file or anonymous, with a header page in front that describes its content. A
// file keeps its content when the process is killed, and cannot be opened with
// another kind or geometry. The structures define the meaning of the bytes:
// keywrite, postcard, list, count.
//
// Words are stored plainly and loaded atomically; docs/decisions/0009 states
// the guarantees for a reader concurrent with a writer.
// Origin: docs/papers.md#dta. Layout: docs/collector.md.
package region
