package flowwatch

import (
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// shuffle has the records of a flowset by partition: those of each lie together, so that a
// partition reads memory in sequence.
type shuffle struct {
	records []flows.Record
	hashes  []uint64 // of records
	places  []uint32 // of records in the flowset; ascending in each partition
	starts  []uint32 // by partition, and one more: where its records begin
	next    []uint32 // by partition: where its next record goes

	of       []uint16 // by record of the flowset: its partition
	unsorted []uint64 // by record of the flowset: its hash
}

// sort copies the records of a flowset for a number of partitions. Ports that the switch
// does not have become unknown ones.
func (s *shuffle) sort(d *flows.Decoded, ports model.PortID, partitions int) {
	n := len(d.Records)
	s.records, s.hashes, s.places = resized(s.records, n), resized(s.hashes, n), resized(s.places, n)
	s.of, s.unsorted = resized(s.of, n), resized(s.unsorted, n)
	s.starts, s.next = resized(s.starts, partitions+1), resized(s.next, partitions)
	clear(s.starts)
	for i := range d.Records {
		clearUnknownPorts(&d.Records[i], ports)
		h := paths.Hash(&d.Records[i].Key)
		p := uint16(partOf(h, partitions))
		s.unsorted[i], s.of[i] = h, p
		s.starts[p+1]++
	}
	for p := range partitions {
		s.starts[p+1] += s.starts[p]
	}
	copy(s.next, s.starts)
	for i, p := range s.of {
		at := s.next[p]
		s.next[p]++
		s.records[at], s.hashes[at], s.places[at] = d.Records[i], s.unsorted[i], uint32(i)
	}
}

// partOf returns the partition of a flow by the upper bits of its hash: tables of flows
// use the lower ones.
func partOf(hash uint64, partitions int) int { return int(hash >> 32 * uint64(partitions) >> 32) }

// part returns the records of a partition, with their hashes and places.
func (s *shuffle) part(p int) (records []flows.Record, hashes []uint64, places []uint32) {
	from, to := s.starts[p], s.starts[p+1]
	return s.records[from:to], s.hashes[from:to], s.places[from:to]
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
