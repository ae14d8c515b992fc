package everflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	shuffle "github.com/weft-telemetry/weft/repro/everflow/reshuffle"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/stream/member"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

var failover = claim.Claim{
	ID: "everflow-failover", Where: "section 3.2, scalable analyzers",
	Says:      "a reshuffler spreads mirrors over analyzers by the inner header; when an analyzer fails, the others take its share and no trace is split",
	Published: "no figure: a multiplexer hashes over the analyzers that run",
	Mutations: []claim.Mutation{fixedPartitions, lateAcknowledgement},
	Run:       runFailover,
}

const (
	partitions = 64
	analyzers  = 4
)

// shuffled is a reshuffler and the analyzers behind it.
type shuffled struct {
	o       claim.Options
	intent  *topo.Intent
	stream  *inproc.Stream
	in      *shuffle.Reshuffler
	running map[string][]*shuffle.Analyzer // one for each time that it was given partitions
	holders map[int]string
	passed  map[trace.ID][]int // hops of the traces that analyzers passed on
	parsed  packet.Packet
	err     error // the first
}

func newShuffled(o claim.Options, intent *topo.Intent) (*shuffled, error) {
	s := &shuffled{
		o: o, intent: intent, running: map[string][]*shuffle.Analyzer{}, holders: map[int]string{},
		passed: map[trace.ID][]int{},
	}
	var err error
	if s.stream, err = inproc.New(inproc.Config{Partitions: partitions, BufferSize: 16 * model.MiB}); err != nil {
		return nil, err
	}
	s.in = shuffle.New(s, partitions)
	var names []string
	for i := range analyzers {
		names = append(names, fmt.Sprint("analyzer ", i))
	}
	if err := s.assign(names); err != nil {
		return nil, err
	}
	return s, s.in.Begin(0)
}

// Publish implements reshuffle.Publisher.
func (s *shuffled) Publish(key uint64, m stream.Message) error {
	if s.o.Without(fixedPartitions) {
		var decoded wire.Mirror
		if _, err := decoded.Parse(m.Data); err == nil && s.parsed.Parse(decoded.Frame) == nil && s.parsed.Depth > 0 {
			running := slices.Sorted(maps.Keys(s.running))
			of := running[wire.Shard(&s.parsed.Innermost().Key, uint32(len(running)))]
			for p := range partitions {
				if s.holders[p] == of {
					key = uint64(p)
					break
				}
			}
		}
	}
	return s.stream.Publish(key, m)
}

// hasty is a subscription that acknowledges what it reads.
type hasty struct{ stream.Subscription }

func (h hasty) Poll(take func(stream.Message)) (int, error) {
	n, err := h.Subscription.Poll(take)
	if n > 0 && err == nil {
		err = h.Subscription.Ack()
	}
	return n, err
}

func (hasty) Ack(...stream.Position) error { return nil }

// assign shares the partitions among the analyzers that run.
func (s *shuffled) assign(names []string) error {
	before := s.holders
	s.holders = member.Assign(partitions, names, before)
	for name := range s.running {
		if !slices.Contains(names, name) {
			delete(s.running, name) // its traces are lost with it
		}
	}
	for _, name := range names {
		var given []int
		for p := range partitions {
			if s.holders[p] == name && before[p] != name {
				given = append(given, p)
			}
		}
		if len(given) == 0 {
			continue
		}
		sub, err := s.stream.Takeover(given...)
		if err != nil {
			return err
		}
		if s.o.Without(lateAcknowledgement) {
			sub = hasty{sub}
		}
		cfg := trace.DefaultConfig()
		cfg.CloseAfter, cfg.RouteSettle = 300*time.Microsecond, time.Millisecond
		cfg.MaxTraces = 1 << 14 // of a partition
		a, err := shuffle.NewAnalyzer(cfg, s.intent, sub, s.pass)
		if err != nil {
			return err
		}
		s.running[name] = append(s.running[name], a)
	}
	return nil
}

func (s *shuffled) pass(t *trace.Trace) { s.passed[t.ID] = append(s.passed[t.ID], len(t.Hops)) }

// poll lets all analyzers work.
func (s *shuffled) poll(now model.Time) {
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		for _, a := range s.running[name] {
			if err := a.Poll(now); s.err == nil {
				s.err = err
			}
		}
	}
}

func runFailover(ctx context.Context, o claim.Options) (claim.Result, error) {
	res := claim.Result{Notes: []string{
		fmt.Sprintf("every packet of flows of 20 to 60 KB is mirrored, to %d partitions of a stream by the hash of its inner header; %d analyzers share them, and one of them is gone after 1.5 ms, with traces open", partitions, analyzers),
		"passes if every trace of one analyzer that sees all mirrors was passed on whole, and none in parts; one that the failed analyzer passed on just before it failed may be passed on again",
	}}
	whole := map[trace.ID]int{} // hops, by one analyzer of everything
	var s *shuffled
	var data []byte
	var last model.Time
	failed := false
	l, err := newLab(setup{
		seed: o.Seed, mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 1 },
		closed: func(t *trace.Trace) { whole[t.ID] = len(t.Hops) },
		seen: func(at model.Time, m *wire.Mirror) {
			if !failed && at >= model.Time(1_500_000) {
				failed = true
				if err := s.assign([]string{"analyzer 0", "analyzer 2", "analyzer 3"}); s.err == nil {
					s.err = err
				}
			}
			data = m.AppendTo(data[:0])
			s.in.AddMirror(at, data)
			if at.Sub(last) >= 100*time.Microsecond {
				last = at
				s.poll(at)
			}
		},
	})
	if err != nil {
		return res, err
	}
	if s, err = newShuffled(o, l.Intent()); err != nil {
		return res, err
	}
	if err := l.addFlows(o.Pick(1000, 200)); err != nil {
		return res, err
	}
	if err := l.run(ctx, 10*ms); err != nil {
		return res, err
	}
	s.poll(last.Add(time.Second))
	if s.err != nil {
		return res, s.err
	}
	complete, split, again := uint64(0), 0, 0
	for id, hops := range whole {
		parts := s.passed[id]
		if slices.Contains(parts, hops) {
			complete++
		}
		if slices.ContainsFunc(parts, func(n int) bool { return n != hops }) {
			split++
		}
		if len(parts) > 1 {
			again++
		}
	}
	res.Pass = failed && complete == uint64(len(whole)) && split == 0 && complete > 0 && s.in.Stats().Lost == 0
	res.Measured = fmt.Sprintf("%s of %d traces whole, %d split, %d passed on twice", percent(complete, uint64(len(whole))), len(whole), split, again)
	table := claim.Table{Title: "partitions of the analyzers that remain", Header: []string{"analyzer", "partitions"}}
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		n := 0
		for _, of := range s.holders {
			if of == name {
				n++
			}
		}
		table.Row(name, fmt.Sprint(n))
	}
	res.Tables = []claim.Table{table}
	return res, nil
}
