package proof

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// prepared returns the prover of a case before its first simulation.
func prepared(t *testing.T, c *Case) *prover {
	t.Helper()
	w, err := newWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &prover{c: c, world: w, used: map[[2]model.NodeID]map[uint16]bool{}}
	p.prepare()
	return p
}

// TestPathsHaveRecords: h8 → h15 is recorded at tor7 and not at leaf6, which reported that it
// sent to tor7. So it came by leaf7, whatever its source port hashes to by an
// unknown ECMP seed, and all its packets did.
func TestPathsHaveRecords(t *testing.T) {
	c := storm(t)
	s := &c.Diagnosis.Account.Timeline.Senders[3]
	one := s.Intervals[0]
	half := (one.FromNs + one.ToNs) / 2
	s.Intervals = []api.SentInterval{one, one, one}
	s.Intervals[0].ToNs, s.Intervals[1].FromNs = half, half+1
	f := c.Fabric.Topology.Fabric
	leaf6, _ := f.ByName("leaf6")
	for seed := range uint64(8) {
		c.Fabric.Topology.Seed = seed + 1
		p := prepared(t, c)
		var first []topo.Hop
		for i := range p.world.senders {
			if p.world.senders[i].flow != s.Flow {
				continue
			}
			hops := p.paths[i].hops
			if slices.ContainsFunc(hops, func(h topo.Hop) bool { return h.Node == leaf6 }) {
				t.Errorf("ECMP seed %d: interval %d passes leaf6, which has no record of it", seed+1, i)
			}
			if first == nil {
				first = hops
			} else if !slices.Equal(hops, first) {
				t.Errorf("ECMP seed %d: interval %d takes %v, another one %v; want the same path", seed+1, i, hops, first)
			}
		}
		if first == nil {
			t.Fatal("the flow is not rebuilt")
		}
	}
}

// TestSteadySendersKeepTheirRate: what a flow sent twice at the same rate is no burst.
func TestSteadySendersKeepTheirRate(t *testing.T) {
	c := storm(t)
	list := c.Diagnosis.Account.Timeline.Senders
	again := func(s *api.TimelineSender, share float64) {
		one := s.Intervals[0]
		next := one
		d := one.ToNs - one.FromNs
		next.FromNs, next.ToNs = one.ToNs+1, one.ToNs+d
		next.Packets, next.Bytes = uint64(share*float64(one.Packets)), int64(share*float64(one.Bytes))
		s.Intervals = append(s.Intervals, next)
	}
	list[1].Intervals[0].ToNs *= 2 // it sent at the rate of its link, which is no burst either
	again(&list[0], 1)
	again(&list[2], 0.5)
	p := prepared(t, c)
	for i := range p.world.senders {
		s := &p.world.senders[i]
		second := i > 0 && p.world.senders[i-1].flow == s.flow
		if want := second && s.flow == list[0].Flow; s.steady != want {
			t.Errorf("%v from %v: steady %v; want %v", s.flow, s.from, s.steady, want)
		}
		counted, _ := p.load(s, setup{fitted: fitted{speed: 1}})
		fast, _ := p.load(s, setup{fitted: fitted{speed: 2, burst: true}})
		if (fast > counted) == s.steady {
			t.Errorf("%v from %v, steady %v: %v, and %v in a burst", s.flow, s.from, s.steady, counted, fast)
		}
		if all, _ := p.load(s, setup{fitted: fitted{speed: 2, burst: true, steady: true}}); all <= counted {
			t.Errorf("%v from %v: %v, and %v in a burst of all", s.flow, s.from, counted, all)
		}
	}
}

// TestNearestFit: of a packet in flight a run is better that is late by little more than the
// recorded lateness, and one that is late by less is an error.
func TestNearestFit(t *testing.T) {
	p := prepared(t, storm(t))
	p.world.victim.late, p.world.victim.inFlight = 100*time.Microsecond, true
	late := func(us int) *outcome { return &outcome{late: time.Duration(us) * time.Microsecond} }
	order := []*outcome{late(101), late(95), late(130), late(900), late(70), late(10)}
	for i := 1; i < len(order); i++ {
		if !p.isNearer(order[i-1], order[i]) || p.isNearer(order[i], order[i-1]) {
			t.Errorf("late by %v is not nearer than by %v", order[i-1].late, order[i].late)
		}
	}
}

// TestShareOfTheCause: a packet may wait for pauses of a host and for flows at one port. The
// verdict's share is that of its own cause.
func TestShareOfTheCause(t *testing.T) {
	at := api.PortRef{Node: "tor1", Port: 2}
	d := new(api.DiagnosisDetail)
	d.Account = &api.Account{LateNs: 100, Terms: []api.AccountTerm{
		{Kind: "host injection", Location: &at, Ns: 60}, {Kind: "contention", Location: &at, Ns: 40},
	}}
	d.Initial, d.RootCause = &at, hostInjection
	if s := share(d); s != 0.6 {
		t.Errorf("share %v of the host's pauses; want 0.6", s)
	}
	d.RootCause = "flow-contention"
	if s := share(d); s != 0.4 {
		t.Errorf("share %v of the flows; want 0.4", s)
	}
}
