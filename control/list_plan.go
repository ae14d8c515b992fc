package control

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ListPlan assigns lists to kinds of reports. Devices and controller must agree on
// it. A kind without lists is not received.
type ListPlan struct {
	Flowsets ListRange // one list per switch, in the order of Switches
	Labels   ListRange
	Mirrors  ListRange // one per analyzer
	Epochs   ListRange
	// DiagnosisRequests have the polls that hosts send about slow flows: they
	// identify the flow that the switches' answers are about.
	DiagnosisRequests ListRange

	// Switches have the lists of Flowsets, by ascending id. Hosts have none.
	Switches []model.NodeID
}

// ListRange is successive lists.
type ListRange struct {
	First dta.ListID
	Count int
}

// contains reports whether a list is in the range.
func (r ListRange) contains(l dta.ListID) bool {
	return l >= r.First && l < r.First+dta.ListID(r.Count)
}

// end is the list after the range.
func (r ListRange) end() int { return int(r.First) + r.Count }

// DefaultListPlan is the plan for a fabric: flowsets first, in the order of the
// switches' ids.
func DefaultListPlan(f *topo.Fabric) ListPlan {
	at := dta.ListID(0)
	next := func(n int) ListRange {
		r := ListRange{at, n}
		at += dta.ListID(n)
		return r
	}
	return ListPlan{
		Flowsets: next(len(f.Switches())), Labels: next(1), Mirrors: next(1), Epochs: next(1), DiagnosisRequests: next(1),
		Switches: f.Switches(),
	}
}

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
	if !l.Flowsets.contains(id) || int(id-l.Flowsets.First) >= len(l.Switches) {
		return 0, false
	}
	return l.Switches[id-l.Flowsets.First], true
}

// Memory is the layout of the lists in a collector's memory: rings of entries that
// hold the data of the longest report.
func (l ListPlan) Memory(entry int) list.Config {
	n := max(l.Flowsets.end(), l.Labels.end(), l.Mirrors.end(), l.Epochs.end(), l.DiagnosisRequests.end())
	cfg := list.Config{Layout: list.Weft, Batch: 16}
	for id := range dta.ListID(n) {
		c := list.Class{Lists: 1, Entry: entry, Capacity: 1024, Sized: true}
		if l.Mirrors.contains(id) || l.Labels.contains(id) {
			c.Capacity = 16 << 10 // of a whole fabric, and small ones
		}
		if last := len(cfg.Classes) - 1; last >= 0 && cfg.Classes[last].Capacity == c.Capacity {
			cfg.Classes[last].Lists++
			continue
		}
		cfg.Classes = append(cfg.Classes, c)
	}
	return cfg
}
