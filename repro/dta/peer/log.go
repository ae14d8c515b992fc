package peer

import "github.com/weft-telemetry/weft/model"

// Record is a report in a Log.
type Record struct {
	Time  model.Time
	Key   Key
	Value uint32
}

// fields are the parts of a key that have a separate index.
var fields = [...]struct{ from, to int }{{0, 4}, {4, 8}, {8, 10}, {10, 12}, {12, 13}}

// Log keeps every report in order of time, and finds them by flow and by any
// field of its key: the records of a flow, or of a field's value, are a chain
// from the newest back.
type Log struct {
	records []Record
	flows   *Hash    // the newest record of each
	before  []uint32 // by record: the one before it of the same flow; 0 is none
	indexes [len(fields)]index
}

// index is a tree over the bytes of a field, one level for each. Its leaves
// have the newest record of a value.
type index struct {
	nodes  [][256]uint32 // the first is the root; 0 is none
	before []uint32      // by record: the one before it with the same value; 0 is none
}

// NewLog returns a log with capacity for a number of records and flows.
func NewLog(records, flows int) *Log {
	l := &Log{records: make([]Record, 0, records), flows: NewHash(flows), before: make([]uint32, 0, records)}
	for i := range l.indexes {
		l.indexes[i] = index{nodes: make([][256]uint32, 1), before: make([]uint32, 0, records)}
	}
	return l
}

// Len returns the number of records.
func (l *Log) Len() int { return len(l.records) }

// Reset empties the log and keeps its memory.
func (l *Log) Reset() {
	l.records, l.before = l.records[:0], l.before[:0]
	l.flows.Reset()
	for i := range l.indexes {
		x := &l.indexes[i]
		clear(x.nodes)
		x.nodes, x.before = x.nodes[:1], x.before[:0]
	}
}

// Put adds a record. It reports whether it fits.
func (l *Log) Put(r Record) bool {
	if len(l.records) == cap(l.records) {
		return false
	}
	last, fits := l.flows.swap(&r.Key, uint32(len(l.records)+1))
	if !fits {
		return false
	}
	l.records, l.before = append(l.records, r), append(l.before, last)
	for i, f := range fields {
		l.indexes[i].add(r.Key[f.from:f.to], uint32(len(l.records)))
	}
	return true
}

// add puts record n, counted from 1, at the head of a value's chain.
func (x *index) add(value []byte, n uint32) {
	at := uint32(0)
	for _, b := range value[:len(value)-1] {
		next := x.nodes[at][b]
		if next == 0 {
			next = uint32(len(x.nodes))
			x.nodes = append(x.nodes, [256]uint32{})
			x.nodes[at][b] = next
		}
		at = next
	}
	leaf := &x.nodes[at][value[len(value)-1]]
	x.before = append(x.before, *leaf)
	*leaf = n
}

// newest returns the head of a value's chain, 0 where there is none.
func (x *index) newest(value []byte) (n uint32) {
	for i, b := range value {
		if n = x.nodes[n][b]; n == 0 || i == len(value)-1 {
			return n
		}
	}
	return 0
}

// Flow returns the records of a key, the newest first.
func (l *Log) Flow(k *Key) (found []Record) {
	n, _ := l.flows.Get(k)
	for ; n != 0; n = l.before[n-1] {
		found = append(found, l.records[n-1])
	}
	return found
}

// From returns the records of a source address, the newest first.
func (l *Log) From(address [4]byte) (found []Record) {
	x := &l.indexes[0]
	for n := x.newest(address[:]); n != 0; n = x.before[n-1] {
		found = append(found, l.records[n-1])
	}
	return found
}
