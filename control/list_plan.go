package control

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	wireflowset "github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// ListPlan assigns lists to kinds of reports. Devices and controller must agree on
// it. A kind without lists is not received.
type ListPlan struct {
	Flowsets ListRange // one list per switch, in the order of Switches
	Labels   ListRange // by LabelList
	Mirrors  ListRange // one per analyzer, by MirrorList
	Epochs   ListRange
	// DiagnosisRequests have the polls that hosts send about slow flows: they
	// identify the flow that the switches' answers are about.
	DiagnosisRequests ListRange

	// Switches have the lists of Flowsets, by ascending id. Hosts have none.
	Switches []model.NodeID
	// FlowsetEntries is how many chunks of flowsets a switch's list holds; 0: the
	// least.
	FlowsetEntries int
}

// ListRange is successive lists.
type ListRange struct {
	First dta.ListID
	Count int
}

// Contains reports whether a list is in the range.
func (r ListRange) Contains(l dta.ListID) bool {
	return l >= r.First && l < r.First+dta.ListID(r.Count)
}

// end is the list after the range.
func (r ListRange) end() int { return int(r.First) + r.Count }

// DefaultListPlan is the plan for a fabric: flowsets first, in the order of the
// switches' ids; then as many lists of labels and of mirrors as its size needs, so that
// several sockets and readers can share them.
func DefaultListPlan(f *topo.Fabric) ListPlan {
	at := dta.ListID(0)
	next := func(n int) ListRange {
		r := ListRange{at, n}
		at += dta.ListID(n)
		return r
	}
	shared := min(max((len(f.Switches())+switchesPerList-1)/switchesPerList, 1), maxShared)
	return ListPlan{
		Flowsets: next(len(f.Switches())), Labels: next(shared), Mirrors: next(shared), Epochs: next(1), DiagnosisRequests: next(1),
		Switches: f.Switches(),
	}
}

const (
	// switchesPerList share a list of labels, and one of mirrors. 20 switches of a
	// busy fat-tree send 120,000 of both in a second: 64 fill a ring in 80 ms.
	switchesPerList = 64
	maxShared       = 64
)

// NoList is a list that no plan has.
const NoList = dta.ListID(math.MaxUint32)

// FlowsetList is the list of a switch's flowsets; NoList for any other node.
func (l *ListPlan) FlowsetList(sw model.NodeID) dta.ListID {
	i, ok := slices.BinarySearch(l.Switches, sw)
	if !ok || i >= l.Flowsets.Count {
		return NoList
	}
	return l.Flowsets.First + dta.ListID(i)
}

// FlowsetOwner is the switch whose flowsets a list has.
func (l *ListPlan) FlowsetOwner(id dta.ListID) (sw model.NodeID, ok bool) {
	if !l.Flowsets.Contains(id) || int(id-l.Flowsets.First) >= len(l.Switches) {
		return 0, false
	}
	return l.Switches[id-l.Flowsets.First], true
}

// LabelList is the list of the labels that a switch exports.
func (l *ListPlan) LabelList(sw model.NodeID) dta.ListID {
	if l.Labels.Count <= 1 {
		return l.Labels.First
	}
	i, _ := slices.BinarySearch(l.Switches, sw)
	return l.Labels.First + dta.ListID(i%l.Labels.Count)
}

// MirrorList is the list of a mirrored packet: that of its innermost flow, as
// inswitch/mirror chooses it, so that one analyzer gets all mirrors of a packet.
func (l *ListPlan) MirrorList(m *mirror.Mirror) dta.ListID {
	n := uint32(l.Mirrors.Count)
	if n <= 1 {
		return l.Mirrors.First
	}
	var p packet.Packet
	if p.Parse(m.Frame) != nil || p.Depth == 0 { // a packet of no flow
		return l.Mirrors.First + dta.ListID(uint32(m.Switch)%n)
	}
	return l.Mirrors.First + dta.ListID(mirror.Shard(&p.Innermost().Key, n))
}

// PlanFlowsets makes every list of flowsets hold two and a half slots of a number of
// flows: one that is read, one that waits, and what arrives of the next.
func (l *ListPlan) PlanFlowsets(flows int) error {
	n, err := ChunksPerSlot(flows)
	l.FlowsetEntries = max(minEntries, n*5/2+listBatch)
	return err
}

// ChunksPerSlot is how many chunks the flowset of a slot is, if its table is planned
// for a number of IPv4 flows. One of IPv6 flows is twice as large.
func ChunksPerSlot(flows int) (n int, err error) {
	size, err := flowset.Plan(flows, 0.99, flowset.Single)
	if err != nil {
		return 0, err
	}
	h := wireflowset.Header{Length: 1, Geometry: wireflowset.Geometry(size.Geometry), Layout: flowset.Layout4}
	split, err := h.Split(chunkBytes)
	for ; err == nil; n++ {
		if _, ok := split.Next(); !ok {
			break
		}
	}
	return n, err
}

const (
	minEntries    = 1024     // of any list
	sharedEntries = 16 << 10 // of one that many switches share
	listBatch     = 16       // entries that become readable at once
	chunkBytes    = 1400     // of a flowset, in a datagram of 1,500 bytes
)

// entries is how many entries a list holds.
func (l *ListPlan) entries(id dta.ListID) int {
	switch {
	case l.Flowsets.Contains(id):
		return max(l.FlowsetEntries, minEntries)
	case l.Mirrors.Contains(id), l.Labels.Contains(id):
		return sharedEntries
	}
	return minEntries
}

// Sizes returns the entries of each list of a range, and the memory of all of them,
// with entries for reports of some bytes.
func (l *ListPlan) Sizes(r ListRange, entry int) (entries int, bytes int64) {
	if r.Count < 1 {
		return 0, 0
	}
	entries = l.entries(r.First)
	c := list.Config{Layout: list.Weft, Batch: listBatch, Classes: []list.Class{{Lists: r.Count, Entry: entry, Capacity: entries, Sized: true}}}
	return entries, c.Size()
}

// Memory is the layout of the lists in a collector's memory: rings of entries that
// hold the data of the longest report.
func (l ListPlan) Memory(entry int) list.Config {
	n := max(l.Flowsets.end(), l.Labels.end(), l.Mirrors.end(), l.Epochs.end(), l.DiagnosisRequests.end())
	cfg := list.Config{Layout: list.Weft, Batch: listBatch}
	for id := range dta.ListID(n) {
		c := list.Class{Lists: 1, Entry: entry, Capacity: l.entries(id), Sized: true}
		if last := len(cfg.Classes) - 1; last >= 0 && cfg.Classes[last].Capacity == c.Capacity {
			cfg.Classes[last].Lists++
			continue
		}
		cfg.Classes = append(cfg.Classes, c)
	}
	return cfg
}
