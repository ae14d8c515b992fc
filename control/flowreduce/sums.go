package flowreduce

import (
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// maxSums limits the counters of a second; what is beyond them is in Further.
const maxSums = 8192

// Names of the counters of reduced flows. Those of hosts, jobs and paths follow a
// prefix.
const (
	All     = "reduced flows: all"
	Further = "reduced flows: further hosts, jobs and paths"
	From    = "reduced flows from "
	To      = "reduced flows to "
	OfJob   = "reduced flows of job "
	OnPath  = "reduced flows on "
)

// sums are the counters of one second.
type sums struct {
	second time.Time
	byName map[string]*sum
	slots  int // of this second
	groups slotGroups
	name   []byte
}

type sum struct {
	packets, bytes uint64
	slot           int // the newest
	flows, most    int // in that slot; in any slot
}

// advance ends the second before a time.
func (s *sums) advance(at time.Time, counters []record.Counter) []record.Counter {
	second := at.Truncate(time.Second)
	if s.byName != nil && second.Equal(s.second) { // a clock may begin at the zero time
		return counters
	}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		one := s.byName[name]
		counters = append(counters, record.Counter{
			Time: s.second, Period: time.Second, Name: name, Packets: one.packets, Bytes: one.bytes, Flows: float64(one.most),
		})
	}
	s.second, s.byName, s.slots = second, map[string]*sum{}, 0
	return counters
}

// endSlot adds the groups of a slot to the counters, in the order of their first flows:
// the counters of a second are limited, and which ones it has must not depend on the
// number of parts.
func (s *sums) endSlot() {
	s.slots++
	for _, g := range s.groups.inOrder() {
		s.name = s.groups.appendName(s.name[:0], g)
		s.addNamed(g)
	}
}

func (s *sums) addNamed(g *group) {
	one := s.byName[string(s.name)]
	if one == nil {
		name := string(s.name)
		if len(s.byName) >= maxSums {
			one, name = s.byName[Further], Further
		}
		if one == nil {
			one = &sum{}
			s.byName[name] = one
		}
	}
	one.packets, one.bytes = one.packets+g.packets, one.bytes+g.bytes
	if one.slot != s.slots {
		one.slot, one.flows = s.slots, 0
	}
	one.flows += int(g.flows)
	one.most = max(one.most, one.flows)
}
