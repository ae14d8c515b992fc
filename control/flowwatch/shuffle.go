package flowwatch

import (
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
)

// shuffle lists the records of a flowset by partition.
type shuffle struct {
	hashes []uint64 // by record
	order  []uint32 // records, those of each partition together and ascending
	starts []uint32 // by partition, and one more: where in order its records are
	of     []uint16 // by record: its partition
}

// sort lists the records of a flowset for a number of partitions.
func (s *shuffle) sort(d *flows.Decoded, partitions int) {
	n := len(d.Records)
	s.hashes, s.order, s.of = resized(s.hashes, n), resized(s.order, n), resized(s.of, n)
	s.starts = resized(s.starts, partitions+1)
	clear(s.starts)
	for i := range d.Records {
		h := paths.Hash(&d.Records[i].Key)
		s.hashes[i] = h
		p := uint16(partOf(h, partitions))
		s.of[i] = p
		s.starts[p+1]++
	}
	for p := range partitions {
		s.starts[p+1] += s.starts[p]
	}
	next := s.starts
	for i, p := range s.of {
		s.order[next[p]] = uint32(i)
		next[p]++
	}
	copy(s.starts[1:], s.starts[:partitions])
	s.starts[0] = 0
}

// partOf returns the partition of a flow by the upper bits of its hash: tables of flows
// use the lower ones.
func partOf(hash uint64, partitions int) int { return int(hash >> 32 * uint64(partitions) >> 32) }

// part returns the records of a partition, and the hashes of all records.
func (s *shuffle) part(p int) (records []uint32, hashes []uint64) {
	return s.order[s.starts[p]:s.starts[p+1]], s.hashes
}

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/16) // slots of one fabric differ little
}
