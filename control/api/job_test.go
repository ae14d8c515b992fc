package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestJobs: jobs of flows and of the configuration, and what slows them, over the API's
// handlers.
func TestJobs(t *testing.T) {
	list := []record.Job{{Name: "blue", Hosts: []string{"h8", "h9"}}}
	s, k := newServer(t, func(_ *Config, d *Deps) { d.Jobs = func() *[]record.Job { return &list } })
	k.batch.Flows, k.batch.Losses, k.batch.Ports = nil, nil, nil
	hosts := k.fabric.Hosts()[:3]
	const slot = 10 * time.Millisecond
	for step := range 12 {
		for i, h := range hosts {
			src, dst := k.fabric.Node(h), k.fabric.Node(hosts[(i+1)%3])
			flow := model.FlowKey{Src: src.IPv4, Dst: dst.IPv4, SrcPort: 7, DstPort: 4791, Proto: model.UDP}
			for part := range 3 {
				at := epoch0.Add(-5*time.Second + time.Duration(10*step+part)*slot)
				k.batch.Flows = append(k.batch.Flows, record.FlowSlot{
					Time: at, Slot: slot, Flow: flow, Src: src.Name, Dst: dst.Name, Packets: 100, Bytes: 100_000, Path: []record.FlowHop{{Switch: "tor0"}},
				})
			}
			if i == 0 {
				k.batch.Losses = append(k.batch.Losses, record.Loss{Time: epoch0.Add(-time.Second), Flow: flow, From: "tor0", To: "leaf0", Packets: 20, Sent: 100})
			}
		}
	}
	l, err := s.listJobs(t.Context(), &JobsQuery{})
	if err != nil || len(l.Items) != 2 || !l.Complete {
		t.Fatalf("jobs %+v, %v; want two", l, err)
	}
	blue, found := l.Items[0], l.Items[1]
	if blue.Name != "blue" || blue.Inferred || blue.Steps != 0 || blue.Findings[0].Cause != "none" {
		t.Errorf("job %+v; want blue without steps", blue)
	}
	f := found.Findings[0]
	if found.Pattern != "ring" || !found.Inferred || found.PeriodNs != 100e6 || f.Cause != "link" || f.From != "tor0" || !f.Network {
		t.Errorf("job %+v; want a ring of 100ms that a link slows", found)
	}
	d, err := s.getJob(t.Context(), &jobInput{Name: found.Name})
	if err != nil || len(d.Cells) != 3 || len(d.Ranks) != 3 || len(d.Series) != 10 || len(d.FlowList) != 3 || len(d.Losses) != 1 {
		t.Errorf("job %+v, %v; want three cells, ranks and flows", d, err)
	}
	if _, err := s.getJob(t.Context(), &jobInput{Name: "red"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("job red: %v; want ErrNotFound", err)
	}
}

// TestJobsOfASlowStore: where there is no time to read a whole range, its newest records are
// the answer.
func TestJobsOfASlowStore(t *testing.T) { synctest.Test(t, testJobsOfASlowStore) }

func testJobsOfASlowStore(t *testing.T) {
	s, k := newServer(t)
	k.delay = time.Second
	one := k.batch.Flows[0]
	k.batch.Flows, k.batch.Losses = nil, nil
	for i := range 8 * maxChunk {
		one.Time = epoch0.Add(-time.Duration(i) * 100 * time.Microsecond)
		k.batch.Flows = append(k.batch.Flows, one)
	}
	ctx, cancel := context.WithTimeout(t.Context(), s.cfg.RequestTimeout)
	defer cancel()
	l, err := s.listJobs(ctx, &JobsQuery{})
	if err != nil || l.Complete || !l.From.After(epoch0.Add(-time.Second)) {
		t.Errorf("jobs since %v, complete %v, %v; want those of less than the newest second of 1.6", l.From, l.Complete, err)
	}
}
