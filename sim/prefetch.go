//go:build amd64 || arm64

package sim

// prefetch starts to bring a packet's first line into the cache and does not
// wait for it; nil is fine. Merely reading the packet waits: the processor runs
// a few hundred instructions ahead of a read, which is less than one packet's
// way through a switch, and then stands still. Nanoseconds of CPU for a
// packet-hop of BenchmarkFatTree's traffic, reading and prefetching, in
// interleaved runs on a busy machine: 67 and 67 at k=4, 163 and 151 at k=8, 295
// and 238 at k=16.
//
//go:noescape
func prefetch(p *Packet)
