package flowreduce

import (
	"maps"
	"slices"
	"strings"
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
	begin  time.Time
	byName map[string]*sum
	name   []byte
}

type sum struct {
	packets, bytes uint64
	slot           time.Time // the newest
	flows, most    int       // in that slot; in any slot
}

// advance ends the second before a time.
func (s *sums) advance(at time.Time, counters []record.Counter) []record.Counter {
	begin := at.Truncate(time.Second)
	if s.byName != nil && begin.Equal(s.begin) { // a clock may begin at the zero time
		return counters
	}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		one := s.byName[name]
		counters = append(counters, record.Counter{
			Time: s.begin, Period: time.Second, Name: name, Packets: one.packets, Bytes: one.bytes, Flows: float64(one.most),
		})
	}
	s.begin, s.byName = begin, map[string]*sum{}
	return counters
}

// add adds a flow to the sums of its hosts, its job and its path.
func (s *sums) add(f *record.FlowSlot, job string) {
	s.addTo(f, All)
	s.addTo(f, From, f.Src)
	s.addTo(f, To, f.Dst)
	if job != "" {
		s.addTo(f, OfJob, job)
	}
	s.name = append(s.name[:0], OnPath...)
	for i := range f.Path {
		if i > 0 {
			s.name = append(s.name, " > "...)
		}
		s.name = append(s.name, f.Path[i].Switch...)
	}
	s.addNamed(f)
}

// addTo adds a flow to a counter; hosts outside the fabric have no name.
func (s *sums) addTo(f *record.FlowSlot, parts ...string) {
	if len(parts) > 1 && parts[1] == "" {
		parts = []string{parts[0], "outside"}
	}
	s.name = s.name[:0]
	for _, p := range parts {
		s.name = append(s.name, p...)
	}
	s.addNamed(f)
}

func (s *sums) addNamed(f *record.FlowSlot) {
	one := s.byName[string(s.name)]
	if one == nil {
		name := strings.Clone(string(s.name))
		if len(s.byName) >= maxSums {
			if one, name = s.byName[Further], Further; one != nil {
				one.add(f)
				return
			}
		}
		one = &sum{}
		s.byName[name] = one
	}
	one.add(f)
}

func (s *sum) add(f *record.FlowSlot) {
	s.packets, s.bytes = s.packets+f.Packets, s.bytes+f.Bytes
	if !s.slot.Equal(f.Time) {
		s.slot, s.flows = f.Time, 0
	}
	s.flows++
	s.most = max(s.most, s.flows)
}
