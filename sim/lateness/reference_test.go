package lateness

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"pgregory.net/rapid"
)

// slow has links of 8 Gb/s, so that a byte takes a nanosecond, and thresholds
// that are soon reached.
func slow() (sim.Config, topo.Links) {
	cfg := unthrottled()
	cfg.MTU, cfg.Reserve, cfg.Xoff, cfg.Xon = 500, model.KB, 5*model.KB, 3*model.KB
	cfg.Lossless = 1<<3 | 1<<4
	l := topo.DefaultLinks()
	l.Host.Rate, l.Fabric.Rate = 8*model.Gbps, 8*model.Gbps
	l.Host.Delay, l.Fabric.Delay = 500*time.Nanosecond, 300*time.Nanosecond
	return cfg, l
}

// tree has three leaves with two hosts each under one spine.
func tree(t testing.TB, cfg sim.Config, l topo.Links) *bed {
	t.Helper()
	f, err := topo.LeafSpine(3, 1, 2, l)
	if err != nil {
		t.Fatal(err)
	}
	return lay(t, f, topo.RouteConfig{Seed: 1}, cfg, time.Second)
}

// compare compares accounts of packets with the reference. The reference has
// steps of a nanosecond: it cannot be closer than a few of them.
func (b *bed) compare(every int, tolerance float64) (late int) {
	b.t.Helper()
	r, packets := newReplay(b.o), 0
	b.each(func(key model.FlowKey, sent engine.Time) {
		if packets++; packets%every != 0 {
			return
		}
		a, err := b.o.AccountRoundTrip(key, sent)
		b.check(&a, err)
		if a.Late == 0 {
			return
		}
		late++
		trip := trip{oracle: b.o, now: b.Now()}
		if err := trip.follow(key, sent, true); err != nil {
			b.t.Fatal(err)
		}
		want := r.account(&trip)
		if d := distance(b.o.rootsOf(a.Terms), want); d > 3+tolerance*float64(a.Late/engine.Nanosecond) {
			b.t.Errorf("%v ns of the account of a packet late by %v differ; want at most %v of it\n%vreference %v", d, a.Late, tolerance, &a, want)
		}
	})
	return late
}

// drawSlow draws a scenario for the reference.
func drawSlow(t testing.TB, rt *rapid.T) *bed {
	cfg, l := slow()
	cfg.Seed = rapid.Uint64Range(1, 1000).Draw(rt, "seed")
	cfg.AckControl = rapid.Bool().Draw(rt, "acknowledgements in the control class")
	var b *bed
	if rapid.Bool().Draw(rt, "ring") {
		b = ringOf(t, cfg, l, time.Second)
	} else {
		b = tree(t, cfg, l)
	}
	host := rapid.SampledFrom(b.Fabric().Hosts())
	for range rapid.IntRange(2, 8).Draw(rt, "flows") {
		src, dst := host.Draw(rt, "src"), host.Draw(rt, "dst")
		if src != dst {
			b.add(traffic.Flow{
				Src: src, Dst: dst, Bytes: model.Bytes(rapid.IntRange(1, 20_000).Draw(rt, "bytes")),
				Priority: rapid.SampledFrom([]model.Priority{3, 3, 3, 4}).Draw(rt, "class"),
				Start:    model.Time(rapid.IntRange(0, 5_000).Draw(rt, "start")),
			})
		}
	}
	if rapid.Bool().Draw(rt, "storm") {
		b.inject(sim.Injection{
			At: model.Time(rapid.IntRange(0, 10_000).Draw(rt, "at")), For: 10 * time.Microsecond,
			Fault: sim.Storm{Host: host.Draw(rt, "pausing"), Priority: 3},
		})
	}
	return b
}

func TestAccountsMatchTheReference(t *testing.T) {
	race.LeaveToPlainRun(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := drawSlow(t, rt)
		b.run(35 * time.Microsecond)
		b.compare(11, 0.005)
	})
}

// The shorter the pieces, the closer the account is to the reference: what is
// left at their usual length is due to it.
func TestShortPiecesMatchTheReferenceClosely(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, fabric := range []string{"tree", "ring"} {
		cfg, l := slow()
		b := tree(t, cfg, l)
		if fabric == "ring" {
			b = ringOf(t, cfg, l, time.Second)
		}
		b.o.step = 20 * engine.Nanosecond
		hosts := b.Fabric().Hosts()
		for i, src := range hosts {
			b.add(traffic.Flow{Src: src, Dst: hosts[(i+2)%len(hosts)], Bytes: 30 * model.KB, Priority: 3, Start: model.Time(i * 100)})
			if i > 0 {
				b.add(traffic.Flow{Src: src, Dst: hosts[0], Bytes: 10 * model.KB, Priority: 3, Start: 1000})
			}
		}
		b.inject(sim.Injection{At: 15_000, For: 20 * time.Microsecond, Fault: sim.Storm{Host: hosts[1], Priority: 3}})
		b.run(50 * time.Microsecond)
		if late := b.compare(5, 0.001); late < 20 {
			t.Errorf("%s: %d late packets, want at least 20", fabric, late)
		}
	}
}
