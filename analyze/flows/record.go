package flows

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Grade says how far a decoded count can be trusted. A count that is not certain
// is Estimated. One case cannot be seen: a flow that the filter took for a known
// one, and that shares all its cells with another flow, or all but one that is
// not known. Its packets are then counted as the other's.
type Grade uint8

// Grades, from doubt to certainty. A flow that was inserted but is in no record
// is counted in Decoded.Undecoded.
const (
	Estimated Grade = iota // the flow was present; its counters are an estimate
	Exact                  // flow and counters are proven
)

// String prints the grade's name.
func (g Grade) String() string {
	if g == Exact {
		return "exact"
	}
	return "estimated"
}

// Record is one flow in one switch during one slot.
type Record struct {
	Key     model.FlowKey
	Packets uint64
	Bytes   uint64 // Ethernet header to payload, no FCS, labels not counted; 0 where cells carry none

	// The ports that its first packet of the slot came in and left by; 0 where
	// cells carry none. Out is 0 too where that packet had no route. Later
	// packets may have used others.
	In, Out model.PortID

	Grade Grade
}

// Decoded is the result of decoding one flowset: the flows of one address family
// that one switch (or one of its ports) saw in one slot.
type Decoded struct {
	Switch model.NodeID
	Scope  model.PortID // the port it covers; 0: the whole switch
	V6     bool         // family of its flows
	Slot   uint32
	Start  model.Time // on the switch's own clock
	Length time.Duration

	Records []Record
	// Compact has all records instead, where Options.Compact asks for it and the table
	// emptied by itself.
	Compact []CompactRecord

	// Likely are flows that were found at a neighbour and that pass the filter,
	// but whose presence no cell proves.
	Likely []model.FlowKey

	// Undecoded counts flows that were inserted and are not in Records.
	Undecoded uint32
	// Unexplained counts packets that are in the table and in no Exact record:
	// those of the flows above, of false positives of the filter, and of cells
	// that did not arrive.
	Unexplained uint64
	// MissingCells and MissingFilter are the parts of the flowset that did not
	// arrive, in cells and in bytes of the filter.
	MissingCells, MissingFilter uint32
	// Unkeyed and Missed are packets the switch saw and did not count.
	Unkeyed, Missed uint32
	// Probes are packets of Weft's own, which the switch counted apart.
	Probes uint32

	// MayContain is the switch's flow filter: false proves that the flow was not
	// counted in this slot. Nil: no filter arrived.
	MayContain func(model.FlowKey) bool
	Filter     FilterState // what MayContain asks, for other processes
}

// Absent reports whether it is proven that the switch saw no packet of a flow in
// this slot. A missing record is no proof: the flow may be among the undecoded,
// or hidden by a false positive of the filter.
func (d *Decoded) Absent(key model.FlowKey) bool {
	return d.Missed == 0 && d.MayContain != nil && !d.MayContain(key)
}

// Complete reports whether every packet that the switch counted is in a record
// whose counters are exact.
func (d *Decoded) Complete() bool {
	return d.Undecoded == 0 && d.Unexplained == 0 && d.MissingCells == 0 && d.Missed == 0
}
