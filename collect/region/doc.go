// Package region is the memory that reports are written into: a mapping, of a
// file or anonymous, with one page of header in front that says what lies in
// it. A file keeps what was written when the process is killed, and refuses to
// be opened as something else. What the bytes mean is left to the structures:
// keywrite, postcard, list, count.
//
// Words are stored plainly and loaded atomically; docs/decisions/0009 states
// what a reader beside a writer may rely on.
// Origin: docs/papers.md#dta. Layout: docs/collector.md.
package region
