package incident

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// snapshot is the state of a correlator.
type snapshot struct {
	NextID           uint64
	Open, Remembered []savedIncident
}

// savedIncident is an incident with what its package knows besides.
type savedIncident struct {
	Incident
	RootNodes        []model.NodeID
	RootDestinations []model.Addr
	RootCycle        []model.Port
	Interval         time.Duration
	Source           anomaly.Source
	Scale            uint64
}

// Snapshot encodes the incidents that evidence may still join, so that another correlator
// can continue with them.
func (c *Correlator) Snapshot() []byte {
	s := snapshot{NextID: c.nextID, Open: save(c.open), Remembered: save(c.remembered)}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&s); err != nil {
		panic(fmt.Sprintf("incident: snapshot: %v", err)) // values of ours
	}
	return b.Bytes()
}

// Restore replaces all incidents by those of a snapshot. Changes that were not taken are
// forgotten.
func (c *Correlator) Restore(data []byte) error {
	var s snapshot
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&s); err != nil {
		return fmt.Errorf("incident: snapshot: %w", err)
	}
	for _, list := range [][]savedIncident{s.Open, s.Remembered} {
		for i := range list {
			if err := list[i].check(); err != nil {
				return fmt.Errorf("incident: snapshot: incident %d: %w", list[i].ID, err)
			}
		}
	}
	c.nextID, c.open, c.remembered, c.closedChanges = s.NextID, restore(s.Open), restore(s.Remembered), nil
	return nil
}

// check returns an error for a cause or source that there is not: gob takes any number.
func (s *savedIncident) check() error {
	if s.Cause >= anomaly.NumCauses || s.Source >= anomaly.NumSources {
		return fmt.Errorf("cause %d by source %d, want them below %d and %d", s.Cause, s.Source, anomaly.NumCauses, anomaly.NumSources)
	}
	for i := range s.Timeline {
		if e := &s.Timeline[i]; e.Cause >= anomaly.NumCauses || e.Source >= anomaly.NumSources {
			return fmt.Errorf("evidence %d: cause %d by source %d, want them below %d and %d", i, e.Cause, e.Source, anomaly.NumCauses, anomaly.NumSources)
		}
	}
	return nil
}

func save(list []*Incident) (saved []savedIncident) {
	for _, in := range list {
		saved = append(saved, savedIncident{*in, in.root.nodes, in.root.destinations, in.root.cycle, in.interval, in.source, in.scale})
	}
	return saved
}

func restore(saved []savedIncident) (list []*Incident) {
	for i := range saved {
		s := &saved[i]
		in := s.Incident
		in.root = root{s.RootNodes, s.RootDestinations, s.RootCycle}
		in.interval, in.source, in.scale = s.Interval, s.Source, s.Scale
		list = append(list, &in)
	}
	return list
}
