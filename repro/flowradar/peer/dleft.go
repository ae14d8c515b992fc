package peer

import (
	"fmt"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// DLeft is a d-left hash table of flows and packet counts: d sub-tables, each a
// row of buckets of L cells. A new flow goes to the least loaded of its d
// buckets, the leftmost of equals; where all are full it overflows.
type DLeft struct {
	tables      int // d
	bucketCells int // cells per bucket, L
	buckets     int // per sub-table
	seed        uint64
	load        []uint8 // of each bucket, sub-table after sub-table
	cells       []dleftCell

	Flows      int // in the table
	Overflowed int // flows that did not fit; each packet of one tries again
}

type dleftCell struct {
	key     model.FlowKey
	packets uint32
}

// DLeftCellBytes is the size of a cell: 5-tuple and counter.
const DLeftCellBytes = KeyBytes + CounterBytes

// NewDLeft returns an empty table that fits into a number of bytes.
func NewDLeft(tables, bucketCells, bytes int, seed uint64) (*DLeft, error) {
	if tables < 1 || bucketCells < 1 || bucketCells > 255 {
		return nil, fmt.Errorf("d-left: %d tables of buckets of %d cells, want at least 1, and buckets of at most 255", tables, bucketCells)
	}
	buckets := bytes / (DLeftCellBytes * tables * bucketCells)
	if buckets < 1 {
		return nil, fmt.Errorf("d-left: %d bytes, want capacity for a bucket of %d cells in each of %d tables", bytes,
			bucketCells, tables)
	}
	return &DLeft{
		tables: tables, bucketCells: bucketCells, buckets: buckets, seed: seed,
		load: make([]uint8, tables*buckets), cells: make([]dleftCell, tables*buckets*bucketCells),
	}, nil
}

// Cells returns the capacity of the table in flows.
func (t *DLeft) Cells() int { return len(t.cells) }

// Add counts packets of a flow. It reports whether the flow has a cell.
func (t *DLeft) Add(key *model.FlowKey, packets uint32) bool {
	least := -1
	for i := range t.tables {
		b := t.bucket(key, i)
		for j := range int(t.load[b]) {
			if c := &t.cells[b*t.bucketCells+j]; c.key == *key {
				c.packets += packets
				return true
			}
		}
		if least < 0 || t.load[b] < t.load[least] {
			least = b
		}
	}
	if int(t.load[least]) == t.bucketCells {
		t.Overflowed++
		return false
	}
	t.cells[least*t.bucketCells+int(t.load[least])] = dleftCell{*key, packets}
	t.load[least]++
	t.Flows++
	return true
}

// Packets returns a flow's count, and whether it is in the table.
func (t *DLeft) Packets(key *model.FlowKey) (uint32, bool) {
	for i := range t.tables {
		b := t.bucket(key, i)
		for j := range int(t.load[b]) {
			if c := &t.cells[b*t.bucketCells+j]; c.key == *key {
				return c.packets, true
			}
		}
	}
	return 0, false
}

func (t *DLeft) bucket(key *model.FlowKey, table int) int {
	at, _ := bits.Mul64(key.Hash(t.seed+uint64(table)), uint64(t.buckets))
	return table*t.buckets + int(at)
}
