package serve

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Summary is what a replay found.
type Summary struct {
	From        time.Time         `json:"from"` // of the recording
	To          time.Time         `json:"to"`
	Packets     uint64            `json:"packets"` // of the files
	Reports     map[string]uint64 `json:"reports"` // by kind; datagrams and mirrored packets
	Broken      []string          `json:"broken"`  // files that break off
	Flows       int               `json:"flows"`   // distinct
	FlowSlots   uint64            `json:"flow_slots"`
	LostPackets uint64            `json:"lost_packets"` // of flows, between two switches
	Traces      map[string]uint64 `json:"traces"`       // by fate of the packet
	Ports       int               `json:"ports"`        // that reported
	Diagnoses   uint64            `json:"diagnoses"`
	Incidents   []api.Incident    `json:"incidents"` // in the order of their start
	Stages      []api.Stage       `json:"stages"`    // of the pipeline, with losses by reason
	Kept        uint64            `json:"kept"`      // records in the store
}

// Faulty reports whether there is an incident above notice.
func (f *Summary) Faulty() bool {
	return slices.ContainsFunc(f.Incidents, func(i api.Incident) bool { return i.Severity != "notice" })
}

// totals counts records.
type totals struct {
	from      model.Time
	flows     map[model.FlowKey]struct{}
	slots     uint64
	lost      uint64
	traces    map[string]uint64
	ports     map[record.Port]struct{}
	diagnoses uint64
	incidents map[string]api.Incident // the newest state of each
	merged    map[string]bool         // those merged into others
}

func newTotals() totals {
	return totals{
		flows: map[model.FlowKey]struct{}{}, traces: map[string]uint64{}, ports: map[record.Port]struct{}{},
		incidents: map[string]api.Incident{}, merged: map[string]bool{},
	}
}

func (t *totals) addRecords(b *record.Batch) {
	t.slots += uint64(len(b.Flows))
	for i := range b.Flows {
		t.flows[b.Flows[i].Flow] = struct{}{}
	}
	for i := range b.Losses {
		t.lost += b.Losses[i].Packets
	}
	for i := range b.Ports {
		t.ports[record.Port{Node: b.Ports[i].Node, Port: b.Ports[i].Port}] = struct{}{}
	}
	for i := range b.Traces {
		t.traces[b.Traces[i].End]++
	}
	t.diagnoses += uint64(len(b.Diagnoses))
	for i := range b.Incidents {
		t.incidents[b.Incidents[i].ID] = api.NewIncident(&b.Incidents[i])
	}
}

// addIncident notes incidents that turned out to be part of others.
func (t *totals) addIncident(in *incident.Incident) {
	if in.MergedInto != 0 {
		t.merged["i"+strconv.FormatUint(in.ID, 10)] = true
	}
}

func instant(t model.Time) time.Time { return time.Unix(0, int64(t)).UTC() }

// summary returns the findings so far.
func (r *Replay) summary(in *capture.Reader) *Summary {
	t, st := &r.totals, in.Stats()
	f := &Summary{
		From: instant(t.from), To: instant(r.lastReport), Packets: st.Packets, Reports: map[string]uint64{"rejected": st.Rejected}, Broken: []string{},
		Flows: len(t.flows), FlowSlots: t.slots, LostPackets: t.lost, Traces: t.traces, Ports: len(t.ports), Diagnoses: t.diagnoses,
		Incidents: []api.Incident{}, Stages: r.stages(),
	}
	if r.core.Writer != nil {
		f.Kept = r.core.Writer.Stats().Written
	}
	for _, k := range sources.Kinds() {
		f.Reports[string(k)] = st.Kinds[k]
	}
	for _, err := range in.TruncatedFiles() {
		f.Broken = append(f.Broken, err.Error())
	}
	for _, i := range t.incidents {
		if !t.merged[i.ID] {
			f.Incidents = append(f.Incidents, i)
		}
	}
	slices.SortFunc(f.Incidents, func(a, b api.Incident) int {
		if c := a.Begin.Compare(b.Begin); c != 0 {
			return c
		}
		return cmp.Compare(core.IDNumber(a.ID), core.IDNumber(b.ID))
	})
	return f
}
