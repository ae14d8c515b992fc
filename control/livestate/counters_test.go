package livestate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

func addCount(k keyed.HostKey, delta uint64) dta.Report {
	return dta.Report{Primitive: dta.KeyIncrement, Redundancy: keyed.Copies, Key: k.AppendTo(nil), Delta: delta}
}

// TestCountsAreNeverTooLow compares memory with a map, in the planned table and in one
// of few cells: a count may be too high there, and never is in the planned one.
func TestCountsAreNeverTooLow(t *testing.T) {
	f := fatTree(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Bool().Draw(t, "few cells")
		r := newRig(t, f, Sizes{}, func(p *Plan) {
			if small {
				p.Counters.Cells = 64
			}
		})
		type place struct {
			host  model.NodeID
			class model.Priority
		}
		want := map[place]keyed.Counts{}
		for range rapid.IntRange(0, 200).Draw(t, "reports") {
			host := rapid.SampledFrom(f.Hosts()).Draw(t, "host")
			n := f.Node(host)
			at := place{host, model.Priority(rapid.IntRange(0, 7).Draw(t, "class"))}
			k := keyed.HostKey{
				Switch: n.Ports[0].Peer.Node, Host: rapid.SampledFrom(addresses(n)).Draw(t, "address"), Class: at.class,
				Metric: keyed.Metric(rapid.IntRange(0, keyed.Metrics-1).Draw(t, "metric")),
			}
			delta := rapid.Uint64Range(1, 1<<40).Draw(t, "delta")
			r.put(t, 0, addCount(k, delta))
			c := want[at]
			c[k.Metric] += delta
			want[at] = c
		}
		for _, host := range f.Hosts() {
			for class := range model.Priority(keyed.Classes) {
				got, err := r.HostCounts(host, class)
				if err != nil {
					t.Fatal(err)
				}
				for m, n := range want[place{host, class}] {
					if got[m] < n || !small && got[m] != n {
						t.Fatalf("metric %d of host %d, class %d is %d; want %d", m, host, class, got[m], n)
					}
				}
			}
		}
	})
}

// TestSharedCountersAreWithinTheBound counts the counters of a fabric that are too
// high when all hosts use all priorities, and three.
func TestSharedCountersAreWithinTheBound(t *testing.T) {
	f := fatTree(t, 8)
	for name, tc := range map[string]struct {
		size    model.Bytes
		classes int
		atLeast int // a test of the bound needs some
	}{
		"planned":              {0, keyed.Classes, 0},
		"planned, 3 classes":   {0, 3, 0},
		"a tenth of the cells": {MinMemory, keyed.Classes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, f, Sizes{Counters: tc.size}, func(p *Plan) {
				if tc.size > 0 {
					p.Counters.Cells = uint64(hostCounters(f)) * cellsPerCounter / 10 / 4 * 4
				}
			})
			keys := counterKeys(f, tc.classes)
			for i, k := range keys {
				r.put(t, 0, addCount(k, uint64(i)+1))
			}
			high := 0
			for i, k := range keys {
				c, err := r.counters(k)
				if err != nil || c[k.Metric] < uint64(i)+1 {
					t.Fatalf("counter %+v = %v, %v; want at least %d", k, c, err, i+1)
				}
				if c[k.Metric] > uint64(i)+1 {
					high++
				}
			}
			b, err := r.CounterBound()
			if err != nil || float64(high) > 2*b.Shared*float64(len(keys))+1 || high < tc.atLeast || b.Excess <= 0 {
				t.Errorf("%d of %d counters are too high, %v; want a share of about %v", high, len(keys), err, b)
			}
		})
	}
}

// counterKeys are all keys of a fabric's hosts that use some priorities.
func counterKeys(f *topo.Fabric, classes int) (list []keyed.HostKey) {
	for _, id := range f.Hosts() {
		n := f.Node(id)
		for _, a := range addresses(n) {
			for class := range model.Priority(classes) {
				for m := range keyed.Metrics {
					list = append(list, keyed.HostKey{Switch: n.Ports[0].Peer.Node, Host: a, Class: class, Metric: keyed.Metric(m)})
				}
			}
		}
	}
	return list
}
