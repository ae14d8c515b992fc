package flowwatch

import (
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
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
	n := d.Flows()
	c := &s.columns
	c.Keys, c.Hashes, c.Places, c.Seen = resized(c.Keys, n), resized(c.Hashes, n), resized(c.Places, n), resized(c.Seen, n)
	s.hashes = resized(s.hashes, n)
	s.starts, s.next = resized(s.starts, partitions+1), resized(s.next, partitions)
	clear(s.starts)
	for i := range d.Records {
		s.hashes[i] = paths.Hash(&d.Records[i].Key)
	}
	var key model.FlowKey
	for i := range d.Compact { // instead of d.Records
		d.Compact[i].PutKey(&key)
		s.hashes[i] = paths.Hash(&key)
	}
	for _, h := range s.hashes {
		s.starts[partOf(h, partitions)+1]++
	}
	for p := range partitions {
		s.starts[p+1] += s.starts[p]
	}
	copy(s.next, s.starts)
	for i, h := range s.hashes {
		p := partOf(h, partitions)
		at := s.next[p]
		s.next[p]++
		c.Hashes[at], c.Places[at] = h, uint32(i)
		if d.Compact != nil {
			r := &d.Compact[i]
			r.PutKey(&c.Keys[at])
			in, out := r.Ports()
			c.Seen[at] = paths.Sighting{
				Packets: r.Packets(), Bytes: r.Bytes(), Switch: d.Switch,
				In: knownPort(in, ports), Out: knownPort(out, ports), Exact: true,
			}
			continue
		}
		r := &d.Records[i]
		c.Keys[at], c.Seen[at] = r.Key, paths.MakeSighting(d.Switch, r)
		c.Seen[at].In, c.Seen[at].Out = knownPort(r.In, ports), knownPort(r.Out, ports)
	}
}

// partOf returns the partition of a flow by the upper bits of its hash: tables of flows
// use the lower ones.
func partOf(hash uint64, partitions int) int { return int(hash >> 32 * uint64(partitions) >> 32) }

// part returns the records of a partition.
func (s *shuffle) part(p int) paths.Records {
	from, to := s.starts[p], s.starts[p+1]
	c := &s.columns
	return paths.Records{Keys: c.Keys[from:to], Hashes: c.Hashes[from:to], Places: c.Places[from:to], Seen: c.Seen[from:to]}
}

// len returns the number of records of a partition.
func (s *shuffle) len(p int) int { return int(s.starts[p+1] - s.starts[p]) }

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/16) // slots of one fabric differ little
}
