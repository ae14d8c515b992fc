package live

import (
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
)

// Score compares the incidents found with the injected faults.
type Score struct {
	Faults      []*Injected
	Missed      int
	FalseAlarms []FalseAlarm
}

// FalseAlarm is an incident that no fault explains, or that names another cause
// than the fault's.
type FalseAlarm struct {
	ID    uint64
	Cause anomaly.Cause
	Place model.Port
	Text  string
	Fault *Injected // that it is about; nil: none
}

// Score evaluates all incidents in their final state: a fault whose incident lost the
// right cause, because it was merged into another, is missed. Notices are normal
// background congestion of a busy fabric, and no false alarms.
func (d *Director) Score() (s Score) {
	s.Faults = d.faults
	for _, f := range d.faults {
		if f.Found = f.Found && d.findIncident(f); !f.Found {
			s.Missed++
		}
	}
	for id, in := range d.incidents {
		if in.into != 0 || in.severity == anomaly.Notice {
			continue
		}
		one := FalseAlarm{ID: id, Cause: in.cause, Place: in.place, Text: in.text}
		right := false
		for _, f := range d.faults {
			if f.concerns(in) {
				one.Fault = f
				right = right || f.isFoundBy(in)
			}
		}
		if !right {
			s.FalseAlarms = append(s.FalseAlarms, one)
		}
	}
	slices.SortFunc(s.FalseAlarms, func(a, b FalseAlarm) int { return int(a.ID) - int(b.ID) })
	return s
}

// findIncident reports whether an incident has the right cause of a fault in the
// end, and notes which.
func (d *Director) findIncident(f *Injected) bool {
	best := uint64(0)
	for id, in := range d.incidents {
		if in.into == 0 && f.isFoundBy(in) && (best == 0 || id < best) {
			best = id
		}
	}
	if in := d.incidents[f.Incident]; best != 0 && (in == nil || in.into != 0 || !f.isFoundBy(in)) {
		f.Incident = best
	}
	return best != 0
}

// Report is a score as it is printed.
type Report struct {
	Faults      []FaultReport      `json:"faults"`
	Missed      int                `json:"missed"`
	FalseAlarms []FalseAlarmReport `json:"false_alarms"`
	AllFound    bool               `json:"all_found"` // none missed, no false alarm
	Simulated   time.Duration      `json:"simulated_ns"`
	Hops        int64              `json:"packet_hops"`
}

// FaultReport is one fault and how it was found.
type FaultReport struct {
	Kind         string  `json:"kind"`
	Where        string  `json:"where"`
	What         string  `json:"what"`
	Found        bool    `json:"found"`
	FoundAfterMs float64 `json:"found_after_ms"`
	Cause        string  `json:"cause"`
	Sources      string  `json:"sources"`
}

// FalseAlarmReport is an incident that no fault explains.
type FalseAlarmReport struct {
	Cause string `json:"cause"`
	Place string `json:"location"`
	Text  string `json:"text"`
	About string `json:"about,omitempty"` // the fault that it misdiagnoses
}

// Describe returns a score with the names of the fabric.
func (s Score) Describe(l *Simulation, d *Director) Report {
	name := func(id model.NodeID) string { return l.fabric.Node(id).Name }
	r := Report{Missed: s.Missed, AllFound: s.Missed == 0 && len(s.FalseAlarms) == 0, Simulated: time.Duration(l.Now()), Hops: l.net.Counts.Hops, FalseAlarms: []FalseAlarmReport{}}
	for _, f := range s.Faults {
		one := FaultReport{Kind: f.Kind, What: f.What, Where: "fabric", Found: f.Found}
		if len(f.Nodes) > 0 {
			one.Where = name(f.Nodes[0])
		}
		if in := d.incidents[f.Incident]; f.Found && in != nil {
			one.FoundAfterMs = float64(f.FoundAt.Sub(f.At)) / float64(time.Millisecond)
			one.Cause = in.cause.String()
			for _, src := range in.sources {
				one.Sources += " " + src.String()
			}
			one.Sources = strings.TrimSpace(one.Sources)
		}
		r.Faults = append(r.Faults, one)
	}
	for _, in := range s.FalseAlarms {
		one := FalseAlarmReport{Cause: in.Cause.String(), Place: control.LocationName(l.fabric, in.Place), Text: in.Text}
		if in.Fault != nil {
			one.About = in.Fault.Kind
		}
		r.FalseAlarms = append(r.FalseAlarms, one)
	}
	return r
}
