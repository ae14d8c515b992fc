package flows

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// traffic is flows over a fabric, as its switches recorded them.
type traffic struct {
	fabric   *topo.Fabric
	routes   *topo.Routes
	recorded []*recorded // by switch, in the order of fabric.Switches
}

// trafficConfig says what crosses the fabric.
type trafficConfig struct {
	flows    int // in all
	geometry sketch.Geometry
	layout   flowset.Layout
	differ   float64 // share of flows whose count changes on a link, by one packet
	astray   float64 // share of flows that leave the intended routes
	seed     uint64
	even     bool // between pods, every switch the same number
}

// byPort returns a hash that takes the choice of ports from bits of the source
// port, others at each tier, so that traffic can be spread evenly.
func byPort(f *topo.Fabric) topo.Hash {
	return func(k model.FlowKey, node model.NodeID, _ uint64) uint64 {
		return uint64(k.SrcPort >> (4 * f.Node(node).Tier))
	}
}

// cross sends flows between hosts of different racks along their routes.
func cross(tb testing.TB, f *topo.Fabric, cfg trafficConfig) *traffic {
	tb.Helper()
	routeConfig := topo.RouteConfig{Seed: cfg.seed}
	if cfg.even {
		routeConfig.Hash = byPort(f)
	}
	routes, err := topo.NewRoutes(f, routeConfig)
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(cfg.seed, 3))
	at := map[model.NodeID]*encoder{}
	for _, sw := range f.Switches() {
		at[sw] = newEncoder(tb, sw, r.Uint64(), cfg.geometry, cfg.layout)
	}
	hosts := f.Hosts()
	for i := range cfg.flows {
		src, dst := hosts[r.IntN(len(hosts))], hosts[r.IntN(len(hosts))]
		if cfg.even {
			src = hosts[i%len(hosts)]
			dst = hosts[(i+len(hosts)/4*(1+i/len(hosts)%3))%len(hosts)]
		}
		if src == dst {
			continue
		}
		k := model.FlowKey{
			Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4,
			SrcPort: uint16(32768 + r.Uint32N(4096)), DstPort: 80, Proto: model.TCP,
		}
		if cfg.even {
			path := i / len(hosts) / 3 // one of as many as there are spines
			half := len(f.Node(f.Switches()[0]).Ports) / 2
			k.DstPort, k.SrcPort = uint16(r.Uint32()), uint16(r.Uint32())<<12|uint16(path/half%half)<<8|uint16(path%half)<<4
		}
		if cfg.layout.Key == model.KeyLen6 {
			k.Src, k.Dst, k.V6 = f.Node(src).IPv6, f.Node(dst).IPv6, true
		}
		hops, err := routes.Path(k, src)
		if err != nil {
			tb.Fatal(err)
		}
		packets := 1 + r.IntN(4)
		if r.IntN(10) == 0 {
			packets += r.IntN(100)
		}
		for i, h := range hops[1 : len(hops)-1] {
			if i > 0 && r.Float64() < cfg.differ {
				packets = max(1, packets-1+2*r.IntN(2))
			}
			e := at[h.Node]
			if r.Float64() < cfg.astray {
				e = at[f.Switches()[r.IntN(len(f.Switches()))]]
			}
			e.add(k, packets, 100, h.In, h.Out)
		}
	}
	t := &traffic{fabric: f, routes: routes}
	for _, sw := range f.Switches() {
		t.recorded = append(t.recorded, at[sw].done())
	}
	return t
}

// sets assembles all flowsets, losing a share of the chunks.
func (t *traffic) sets(tb testing.TB, lost float64, r *rand.Rand) (sets []*Flowset) {
	for _, rec := range t.recorded {
		chunks := rec.chunks(tb, 1400)
		kept := chunks[:1]
		for _, c := range chunks[1:] {
			if lost == 0 || r.Float64() >= lost {
				kept = append(kept, c)
			}
		}
		sets = append(sets, assembled(tb, kept...))
	}
	return sets
}

func fatTree(tb testing.TB, k int) *topo.Fabric {
	f, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TestNetNeverErrs decodes fabrics under all loads, with flows that differ
// between switches, go astray, lose chunks and are hidden by filters, and
// holds every record against the truth.
func TestNetNeverErrs(t *testing.T) {
	race.LeaveToPlainRun(t)
	fabric := fatTree(t, 4)
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.Uint32Range(60, 160).Draw(rt, "cells")
		cfg := trafficConfig{
			geometry: sketch.Geometry{
				FilterHashes: uint8(rapid.SampledFrom([]int{4, 12, 24}).Draw(rt, "filter hashes")),
				FilterBits:   64 * cells,
				Tables:       4, TableCells: cells,
			},
			layout: drawLayout(rt),
			differ: rapid.SampledFrom([]float64{0, 0.01, 0.05, 0.3}).Draw(rt, "differ"),
			astray: rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(rt, "astray"),
			seed:   rapid.Uint64().Draw(rt, "seed"),
		}
		cfg.flows = int(float64(cells) * 4 * rapid.Float64Range(0.1, 4).Draw(rt, "load"))
		tr := cross(t, fabric, cfg)
		r := rand.New(rand.NewPCG(cfg.seed, 9))
		sets := tr.sets(t, rapid.SampledFrom([]float64{0, 0, 0.02}).Draw(rt, "lost"), r)
		guides := []Guide{RouteGuide(tr.routes, sets), NeighbourGuide(tr.fabric, sets)}
		for i, d := range NetDecode(sets, Options{Workers: 2}, guides[rapid.IntRange(0, 1).Draw(rt, "guide"):]...) {
			checkRecords(rt, tr.recorded[i], &d)
		}
	})
}
