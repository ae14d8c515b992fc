package lateness

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"pgregory.net/rapid"
)

// draw draws a scenario: a fabric, its settings, flows of several classes and
// faults; those that drop packets from a queue only on request.
func draw(t testing.TB, rt *rapid.T, window time.Duration, drops bool) *bed {
	cfg := unthrottled()
	cfg.Seed = rapid.Uint64Range(1, 1000).Draw(rt, "seed")
	cfg.AckControl = rapid.Bool().Draw(rt, "acknowledgements in the control class")
	cfg.Lossless = 1<<3 | 1<<4
	cfg.MTU = rapid.SampledFrom([]int32{256, 1024, 4096}).Draw(rt, "MTU")
	cfg.Buffer = rapid.SampledFrom([]model.Bytes{600 * model.KB, 3 * model.MB}).Draw(rt, "buffer")
	if rapid.Bool().Draw(rt, "pauses last") {
		cfg.PauseTime = 0
	}
	if rapid.Bool().Draw(rt, "DCQCN") {
		cfg.Congestion = sim.DefaultConfig().Congestion
	}
	cfg.LossyQueue = 20 * model.KB
	cfg.NS3 = rapid.Bool().Draw(rt, "times of ns-3")
	var b *bed
	if rapid.Bool().Draw(rt, "ring") {
		b = ring(t, cfg, window)
	} else {
		b = fatTree(t, cfg, window)
	}
	hosts := b.Fabric().Hosts()
	host := rapid.SampledFrom(hosts)
	for i := range rapid.IntRange(2, 12).Draw(rt, "flows") {
		src, dst := host.Draw(rt, "src"), host.Draw(rt, "dst")
		if src == dst {
			continue
		}
		b.add(traffic.Flow{
			Src: src, Dst: dst, Bytes: model.Bytes(rapid.IntRange(1, 1000).Draw(rt, "KB")) * model.KB,
			Priority: rapid.SampledFrom([]model.Priority{3, 3, 4, 5}).Draw(rt, "class"), Start: model.Time(1000 + i*100),
		})
	}
	if rapid.Bool().Draw(rt, "storm") {
		b.inject(sim.Injection{At: 5_000, For: 20 * time.Microsecond, Fault: sim.Storm{Host: host.Draw(rt, "pausing"), Priority: 3}})
	}
	switches := b.Fabric().Switches()
	if drops && rapid.IntRange(0, 3).Draw(rt, "a reset") == 0 {
		b.inject(sim.Injection{At: 18_000, Fault: sim.QueueReset{Switch: rapid.SampledFrom(switches).Draw(rt, "of")}})
	}
	if rapid.IntRange(0, 3).Draw(rt, "a link fails") == 0 {
		port := model.Port{Node: rapid.SampledFrom(switches).Draw(rt, "at"), Port: 1}
		b.inject(sim.Injection{At: 25_000, For: 10 * time.Microsecond, Fault: sim.LinkDown{Port: port}})
	}
	if rapid.Bool().Draw(rt, "slow receiver") {
		b.inject(sim.Injection{Fault: sim.SlowReceiver{Host: host.Draw(rt, "slow"), Rate: 10 * model.Gbps, Buffer: 20 * model.KB, Priority: 3}})
	}
	return b
}

// An account of the past is the one that was given then.
func TestAccountsOfThePast(t *testing.T) {
	race.LeaveToPlainRun(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := draw(t, rt, time.Second, false)
		type given struct {
			key     model.FlowKey
			account Account
		}
		var all []given
		for _, at := range []time.Duration{15 * time.Microsecond, 40 * time.Microsecond} {
			b.run(at)
			packets := 0
			b.each(func(key model.FlowKey, sent engine.Time) {
				if packets++; packets%29 != 0 {
					return
				}
				a, err := b.o.AccountRoundTrip(key, sent)
				if errors.Is(err, ErrLost) {
					return
				}
				b.check(&a, err)
				all = append(all, given{key, a})
			})
		}
		b.run(200 * time.Microsecond)
		for _, g := range all {
			at := g.account.At
			if !g.account.InFlight {
				at = max(at, 15*engine.Microsecond)
			}
			a, err := b.o.AccountRoundTripAt(g.key, g.account.Hops[0].Began, at)
			if errors.Is(err, ErrLost) {
				continue // since
			}
			if b.check(&a, err); !reflect.DeepEqual(a, g.account) {
				t.Fatalf("%v: %+v; want %+v", at, a, g.account)
			}
		}
	})
}

// Terms add up to the lateness, and hops to the times of the trip, whatever
// happened, also within a short log and in flight.
func TestAccountsAddUp(t *testing.T) {
	race.LeaveToPlainRun(t)
	rapid.Check(t, func(rt *rapid.T) {
		window := time.Duration(rapid.IntRange(20, 200).Draw(rt, "window µs")) * time.Microsecond
		b := draw(t, rt, window, true)
		for _, at := range []time.Duration{20 * time.Microsecond, 60 * time.Microsecond, 300 * time.Microsecond} {
			b.run(at)
			packets := 0
			b.each(func(key model.FlowKey, sent engine.Time) {
				if packets++; packets%17 != 0 {
					return
				}
				for _, account := range []func(model.FlowKey, engine.Time) (Account, error){b.o.Account, b.o.AccountRoundTrip} {
					a, err := account(key, sent)
					if errors.Is(err, ErrLost) {
						continue
					}
					b.check(&a, err)
				}
			})
		}
	})
}
