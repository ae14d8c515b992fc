package serve

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
)

// Stages is part of core.Input.
func (s *socketInput) Stages() []api.Stage {
	var st collector.Status
	if last := s.last.Load(); last != nil {
		st = *last
	} else {
		st = s.collector.Status()
	}
	c := s.counts.Load()
	stages := []api.Stage{socketStage(&st)}
	stages = append(stages, core.PipelineStages(sumIntake(&st), c.lost, c.stats)...)
	for i := range stages {
		if stages[i].Name == "translator" {
			s.door.addLosses(&stages[i])
		}
	}
	for i := range s.listeners {
		stages = append(stages, sourceStage(s.listeners[i].Source, s.listeners[i].Counters()))
	}
	if s.stream != nil {
		stages = append(stages, s.stream.stage())
		if st := s.counters.stage(); st.In > 0 {
			stages = append(stages, st)
		}
		if st := routeStage(s.core.Controller.RouteStats()); st.In > 0 {
			stages = append(stages, st)
		}
	}
	if s.recorder != nil {
		stages = append(stages, recordStage(s.recorder.Stats()))
	}
	return stages
}

// routeStage accounts for BGP routes.
func routeStage(st routeview.Stats) api.Stage {
	return api.Stage{
		Name: "routes", Title: "BGP routes of switches", Unit: "updates", In: st.Updates, Out: st.Updates - st.Refused,
		Losses: []api.StageLoss{{Reason: "too many", About: "routes beyond the bound; their switch is not judged", Count: st.Refused}},
	}
}

// NoData is part of core.GuidingInput.
func (s *socketInput) NoData() (n api.NoData) {
	dta := s.collector.Addr().String()
	n.SendTo = []api.SourceAddress{{Source: string(sources.DTA.Kind), Title: sources.DTA.Title, Address: dta}}
	for i := range s.listeners {
		l := &s.listeners[i]
		if l.Dials {
			continue
		}
		n.SendTo = append(n.SendTo, api.SourceAddress{Source: string(l.Kind), Title: l.Title, Address: l.Addr().String()})
	}
	n.Text = "No report was received since the start. Switches send"
	for i, to := range n.SendTo {
		if i > 0 {
			n.Text += ","
		}
		n.Text += fmt.Sprintf(" %s to %s", to.Title, to.Address)
	}
	n.Text += "; weft serve --check prints the lists that they use."
	n.Try = []api.TryCommand{
		{
			About:   "three faults of a simulated fabric, for a service with --topology examples/recording/reports.topology.yaml",
			Command: "weft demo --scenario examples/recording/scenario.yaml --send udp://" + dta,
		},
		{
			About:   "a fault every 30 seconds, for a service with the topology of weft topo gen fat-tree --k 4 --rate 1Gb/s",
			Command: "weft demo --send udp://" + dta,
		},
		{About: "everything in one process, without a service", Command: "weft demo"},
	}
	return n
}

// RefusedSources is part of core.RefusingInput.
func (s *socketInput) RefusedSources() []api.RefusedSource { return s.door.refusedSources() }

// sumIntake sums up what all sockets received.
func sumIntake(st *collector.Status) (sum translate.IntakeStats) {
	for i := range st.Workers {
		in := &st.Workers[i].Intake
		sum.Reports += in.Reports
		sum.Stored += in.Stored
		sum.Appended += in.Appended
		sum.Duplicate += in.Duplicate
		sum.Stale += in.Stale
		sum.Denied += in.Denied
		sum.UnknownFormat += in.UnknownFormat
		sum.Truncated += in.Truncated
		for v, n := range in.Refused {
			sum.Refused[v] += n
		}
	}
	return sum
}

// socketStage is the path from reporters: what the kernel dropped, and what never
// arrived.
func socketStage(st *collector.Status) api.Stage {
	s := api.Stage{Name: "transport", Title: "Network and sockets", Unit: "datagrams"}
	var dropped, long, missing uint64
	for i := range st.Workers {
		w := &st.Workers[i]
		s.Out += w.Socket.Datagrams
		dropped += w.Socket.Dropped
		long += w.Socket.Truncated
		missing += w.Intake.Missing - min(w.Intake.Missing, w.Intake.Late)
	}
	s.In = s.Out + dropped + long
	s.Losses = []api.StageLoss{
		{Reason: "queue full", About: "datagrams dropped by the kernel's socket buffer", Count: dropped},
		{Reason: "too long", Count: long},
		{Reason: "missing", About: "reports missing by sequence number: lost in the network or in a queue", Count: missing},
	}
	return s
}

// sourceStage is the fate of the reports of a source.
func sourceStage(src source.Source, c source.Counters) api.Stage {
	st := api.Stage{Name: string(src.Kind), Title: src.Title, Unit: c.Unit, In: c.In, Out: c.Out, Losses: []api.StageLoss{}}
	for _, l := range c.Losses {
		st.Losses = append(st.Losses, api.StageLoss{Reason: l.Reason, About: l.About, Count: l.Count, Expected: l.Expected})
	}
	return st
}

// stage is the stream from other sources to the controller.
func (f *streamSource) stage() api.Stage {
	st := f.stream.Stats()
	return api.Stage{
		Name: "readers", Title: "Other sources", Unit: "reports", In: st.Published, Out: st.Delivered, Queued: int(st.Waiting),
		Losses: []api.StageLoss{
			{Reason: "shed", About: "the analyses were too slow", Count: st.Full},
			{Reason: "too large", About: "larger than a partition of the stream", Count: st.TooLarge},
			{Reason: "closed", About: "arrived after shutdown", Count: st.Closed},
		},
	}
}
