package dta

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

var heavyHitters = claim.Claim{
	ID: "dta-heavy-hitters", Where: "section 4, extensibility",
	Says:      "the translator can discover network-wide heavy hitters in transit, and add counters up before they reach the collector",
	Published: "named as an extension; no figure",
	Run:       runHeavyHitters,
	Mutations: []claim.Mutation{networkWide, addingUp},
}

// heavyLab is counters of flows that several switches each see a part of.
type heavyLab struct {
	flows, switches int
	bound           uint64   // packets from which on a flow is heavy
	sizes           []uint64 // packets of each flow
	reports         []flowCount
}

// flowCount is what one switch reports of a flow at a time.
type flowCount struct {
	flow    uint32
	at      uint8 // switch
	packets uint8
}

// newHeavyLab spreads flows of sizes by Zipf's law over four of the switches, which
// report every 16 packets of a flow, and its rest.
func newHeavyLab(o claim.Options) *heavyLab {
	l := &heavyLab{flows: o.Pick(100_000, 20_000), switches: 20}
	total, harmonic := float64(o.Pick(20_000_000, 2_000_000)), 0.0
	if o.Broken() {
		total /= 4
	}
	for i := range l.flows {
		harmonic += 1 / float64(i+1)
	}
	l.bound = uint64(total / 1000)
	rng := claim.Rand(o.Seed, 0)
	for i := range l.flows {
		n := uint64(math.Ceil(total / harmonic / float64(i+1)))
		l.sizes = append(l.sizes, n)
		first := rng.IntN(l.switches)
		for part := range 4 {
			share := n / 4
			if part < int(n%4) {
				share++
			}
			for at := uint8((first + part) % l.switches); share > 0; {
				packets := min(share, 16)
				l.reports = append(l.reports, flowCount{uint32(i), at, uint8(packets)})
				share -= packets
			}
		}
	}
	rng.Shuffle(len(l.reports), func(i, j int) { l.reports[i], l.reports[j] = l.reports[j], l.reports[i] })
	return l
}

// heavyFound is what a translator made of all reports.
type heavyFound struct {
	flows map[uint32]uint64 // reported flows and their sums
	stats translate.Stats
}

// run lets all switches report within a second.
func (l *heavyLab) run(ctx context.Context, o claim.Options) (heavyFound, error) {
	found := heavyFound{flows: map[uint32]uint64{}}
	counts, err := count.Open("", count.DefaultConfig(1<<16))
	if err != nil {
		return found, err
	}
	defer counts.Region().Close()
	entries := list.DefaultConfig(1, 4096)
	entries.Classes[0].Entry = translate.MatchSize(0)
	lists, err := list.Open("", entries)
	if err != nil {
		return found, err
	}
	defer lists.Region().Close()
	out, err := translate.NewLocalWriter(&translate.Memory{Counts: counts, Lists: []*list.Table{lists}}, 0, false, nil)
	if err != nil {
		return found, err
	}
	cfg := translate.DefaultConfig()
	cfg.Heavy = []translate.HeavyKeys{{Above: l.bound, Period: time.Hour}}
	if cfg.AddRows = 4096; o.Without(addingUp) {
		cfg.AddRows = 0
	}
	tr, err := translate.New(cfg, out.Plan, out)
	if err != nil {
		return found, err
	}
	key, report := make([]byte, 13), make([]wire.Report, 1)
	second := float64(time.Second) / float64(len(l.reports))
	for i, r := range l.reports {
		binary.BigEndian.PutUint32(key, r.flow)
		if o.Without(networkWide) {
			key[12] = r.at
		}
		now := model.Time(float64(i) * second)
		report[0] = wire.Report{Primitive: wire.KeyIncrement, Redundancy: 2, Key: key, Delta: uint64(r.packets)}
		tr.Put(now, report)
		if i%4096 == 0 {
			if tr.Tick(now); ctx.Err() != nil {
				return found, ctx.Err()
			}
		}
	}
	tr.Drain(model.Time(time.Second))
	found.stats = tr.Stats()
	head, err := lists.Head(0)
	if err != nil {
		return found, err
	}
	entry := make([]byte, translate.MatchSize(0))
	for pos := range head {
		spans, _, err := lists.BatchParts(0, pos, entry)
		if err == nil {
			err = lists.Region().Read(spans[0].Offset, entry)
		}
		if err != nil {
			return found, err
		}
		m, err := translate.ParseMatch(entry)
		if err != nil {
			return found, err
		}
		flow := binary.BigEndian.Uint32(m.Key)
		found.flows[flow] = max(found.flows[flow], m.Sum)
	}
	return found, nil
}

func runHeavyHitters(ctx context.Context, o claim.Options) (claim.Result, error) {
	l := newHeavyLab(o)
	res := claim.Result{Notes: []string{
		fmt.Sprintf("%d flows with sizes by Zipf's law; four of %d switches each see a quarter of a flow's packets and report every 16 of them by Key-Increment; a flow is heavy with a thousandth of all packets", l.flows, l.switches),
		"the translator has a count-min sketch of 1 MiB for all reporters and appends a key to a list when its sum reaches the bound; 4096 rows add a key's counters up for at most 10 ms before they are written",
		"the paper names both without a figure: passes if every heavy flow is found, 95 % of those found are heavy, none is reported twice, and the collector's memory gets at most three quarters as many additions as reports",
	}}
	o.Report(0, "all switches report")
	found, err := l.run(ctx, o)
	if err != nil {
		return res, err
	}
	heavy, right := 0, 0
	for i, n := range l.sizes {
		if n < l.bound {
			break // sizes fall
		}
		heavy++
		if _, ok := found.flows[uint32(i)]; ok {
			right++
		}
	}
	st := found.stats
	share := float64(st.Additions) / float64(st.KeyIncrements)
	precision := float64(right) / float64(max(1, len(found.flows)))
	res.Pass = right == heavy && precision >= 0.95 && st.Heavy == uint64(len(found.flows)) && share <= 0.75
	res.Measured = fmt.Sprintf("%d of %d heavy flows found, %d of %d found are heavy; %.2f additions per report",
		right, heavy, right, len(found.flows), share)
	table := claim.Table{Title: "heaviest flows found", Header: []string{"flow", "packets", "sum when reported"}}
	for i := range min(10, heavy) {
		table.Row(fmt.Sprint(i), fmt.Sprint(l.sizes[i]), fmt.Sprint(found.flows[uint32(i)]))
	}
	res.Tables = []claim.Table{table}
	return res, nil
}
