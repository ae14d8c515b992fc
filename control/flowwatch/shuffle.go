package flowwatch

import (
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
)

// shuffle has the records of a flowset by partition, as columns: those of each lie
// together, so that a partition reads memory in sequence.
type shuffle struct {
	columns paths.Records
	starts  []uint32 // by partition, and one more: where its records begin
	next    []uint32 // by partition: where its next record goes

	hashes []uint64 // by record of the flowset
}

// sort copies the records of a flowset for a number of partitions. Ports that the switch
// does not have become unknown ones.
func (s *shuffle) sort(d *flows.Decoded, ports model.PortID, partitions int) {
	s.hash(d, partitions)
	c := &s.columns
	c.Keys, c.Seen, c.Compact = resized(c.Keys, len(d.Records)), resized(c.Seen, len(d.Records)), resized(c.Compact, len(d.Compact))
	compact := c.Compact
	for i := range d.Compact { // instead of d.Records
		at := s.place(i, partitions)
		compact[at] = d.Compact[i]
		compact[at].ForgetPortsAbove(ports)
	}
	for i := range d.Records {
		r, at := &d.Records[i], s.place(i, partitions)
		c.Keys[at], c.Seen[at] = r.Key, paths.MakeSighting(d.Switch, r)
		c.Seen[at].In, c.Seen[at].Out = knownPort(r.In, ports), knownPort(r.Out, ports)
	}
}

// hash computes the hashes of all records, and counts those of each partition.
func (s *shuffle) hash(d *flows.Decoded, partitions int) {
	n := d.Flows()
	s.hashes, s.columns.Hashes, s.columns.Places = resized(s.hashes, n), resized(s.columns.Hashes, n), resized(s.columns.Places, n)
	s.starts, s.next = resized(s.starts, partitions+1), resized(s.next, partitions)
	clear(s.starts)
	for i := range d.Records {
		s.note(i, paths.Hash(&d.Records[i].Key), partitions)
	}
	var key model.FlowKey
	for i := range d.Compact {
		d.Compact[i].PutKey(&key)
		s.note(i, paths.Hash(&key), partitions)
	}
	for p := range partitions {
		s.starts[p+1] += s.starts[p]
	}
	copy(s.next, s.starts)
}

func (s *shuffle) note(i int, hash uint64, partitions int) {
	s.hashes[i] = hash
	s.starts[partOf(hash, partitions)+1]++
}

// place returns where a record goes among those of all partitions.
func (s *shuffle) place(i, partitions int) uint32 {
	h := s.hashes[i]
	p := partOf(h, partitions)
	at := s.next[p]
	s.next[p]++
	s.columns.Hashes[at], s.columns.Places[at] = h, uint32(i)
	return at
}

// partOf returns the partition of a flow by the upper bits of its hash: tables of flows
// use the lower ones.
func partOf(hash uint64, partitions int) int { return int(hash >> 32 * uint64(partitions) >> 32) }

// part returns the records of a partition.
func (s *shuffle) part(p int) paths.Records {
	from, to := s.starts[p], s.starts[p+1]
	c := &s.columns
	r := paths.Records{Hashes: c.Hashes[from:to], Places: c.Places[from:to]}
	if len(c.Compact) > 0 {
		r.Compact = c.Compact[from:to]
	} else {
		r.Keys, r.Seen = c.Keys[from:to], c.Seen[from:to]
	}
	return r
}

// len returns the number of records of a partition.
func (s *shuffle) len(p int) int { return int(s.starts[p+1] - s.starts[p]) }

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return hugepages.Make[T](n + n/16)[:n] // slots of one fabric differ little
}
