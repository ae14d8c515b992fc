//go:build amd64 || arm64

package sim

import "unsafe"

// prefetch starts to load a packet's first cache line and does not wait for it;
// nil is allowed. Reading the packet would wait: the CPU runs a few hundred
// instructions ahead of a read, less than a switch needs for one packet, and
// then stalls. Nanoseconds of CPU for a packet-hop of BenchmarkFatTree's
// traffic, reading and prefetching, in interleaved runs on a busy machine: 67
// and 67 at k=4, 163 and 151 at k=8, 295 and 238 at k=16.
//
//go:noescape
func prefetch(p unsafe.Pointer)
