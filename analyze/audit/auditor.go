package audit

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// Auditor compares sources. One goroutine uses it.
type Auditor struct {
	cfg  Config
	sums slotSums

	slot, firstSlot int64 // analysed last, and first
	gap             int64 // the last slot that is missing altogether
	begun           bool

	history    []*portHistory // by the port's number
	badSwitch  []int64        // by node: the last slot whose flowset is not complete
	reportedAt []int64        // by node: the last slot with a flowset; 0: none
	untabled   []float64      // by node: packets so far that switches saw and have in no table
	inSlot     []float64      // of them, those of the slot

	counters    map[counterKey]*counter
	counterList []*counter
	counterOf   [][]*counter // by the port's number

	link, prev, next []*series // by the port's number: see addSlotSeries

	noted map[Source]*noted
	order []Source // of noted, in order of time
}

// New makes an auditor that has seen nothing.
func New(cfg Config) (*Auditor, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n, nodes := cfg.Ports.Len(), len(cfg.Ports.Fabric().Nodes())
	return &Auditor{
		cfg: cfg, sums: newSlotSums(cfg.Ports), history: make([]*portHistory, n),
		badSwitch: make([]int64, nodes), reportedAt: make([]int64, nodes), untabled: make([]float64, nodes), inSlot: make([]float64, nodes),
		counters: map[counterKey]*counter{}, counterOf: make([][]*counter, n),
		link: make([]*series, n), prev: make([]*series, n), next: make([]*series, n), noted: map[Source]*noted{},
	}, nil
}

// SetShares sets Config.PacketShare and Config.ByteShare.
func (a *Auditor) SetShares(packets, bytes float64) {
	a.cfg.PacketShare, a.cfg.ByteShare = packets, bytes
}

// AddSlot adds what all switches counted in a slot, later than those before: the maps have the
// flows, in parts, and decoded says how completely switches reported.
func (a *Auditor) AddSlot(index int64, decoded []flows.Decoded, parts []*paths.Map) {
	a.beginSlot(index)
	for i := range decoded {
		a.addReport(index, &decoded[i])
	}
	for _, m := range parts {
		a.sums.addMap(m)
	}
	a.sums.endMaps()
	a.endSlot()
}

func (a *Auditor) beginSlot(index int64) {
	if !a.begun || index < a.slot {
		a.begun, a.firstSlot, a.gap = true, index, index-1
	} else if index != a.slot+1 {
		a.gap = index - 1
	}
	a.slot = index
	a.sums.reset()
	clear(a.inSlot)
}

// addReport notes a flowset. One that is not complete is of no use here: what it lacks is not
// known.
func (a *Auditor) addReport(index int64, d *flows.Decoded) {
	if uint64(d.Switch) >= uint64(len(a.reportedAt)) {
		return
	}
	a.reportedAt[d.Switch] = index
	n := float64(d.Unkeyed) + float64(d.Probes)
	a.inSlot[d.Switch] += n
	a.untabled[d.Switch] += n
	if !d.Complete() {
		a.badSwitch[d.Switch] = index
	}
}

// endSlot compares, and judges a part of the ports: all of them within a block.
func (a *Auditor) endSlot() {
	for id := range a.reportedAt {
		if at := a.reportedAt[id]; at != 0 && at != a.slot {
			a.badSwitch[id] = a.slot
		}
	}
	for _, n := range a.sums.touched {
		s := &a.sums.sums[n]
		h := a.history[n]
		if h == nil {
			h = &portHistory{}
			a.history[n] = h
		}
		if s.unclear {
			h.bad = a.slot
		}
		h.add(a.slot, s.in, s.out)
	}
	for _, n := range a.sums.touched {
		a.addSlotSeries(n)
	}
	for _, c := range a.counterList {
		a.resolve(c)
	}
	a.judgeSome()
	a.forgetOld()
}

// usable reports whether what a port's flowset counted in the slot is known.
func (a *Auditor) usable(n uint32) bool {
	node := a.cfg.Ports.Port(n).Node
	return a.reportedAt[node] == a.slot && a.badSwitch[node] != a.slot && !a.sums.sums[n].unclear
}

// slackOf is the packets of the slot that a port's counter may have and its flowset has not.
func (a *Auditor) slackOf(n uint32) float64 { return a.inSlot[a.cfg.Ports.Port(n).Node] }

// untabledAt is the same for all slots so far.
func (a *Auditor) untabledAt(n uint32) float64 { return a.untabled[a.cfg.Ports.Port(n).Node] }

// addSlotSeries compares what flowsets counted of a port's packets: what it sent with what the
// peer, and the switch before, counted; what it received with what the switch after counted.
func (a *Auditor) addSlotSeries(n uint32) {
	if !a.usable(n) {
		return
	}
	s, slack := &a.sums.sums[n], a.slackOf(n)
	if s.in[packets] > 0 {
		a.compare(&a.next[n], s.next, s.in, s.ownNext, slack)
	}
	if s.out[packets] == 0 {
		return
	}
	a.compare(&a.prev[n], s.prev, s.out, s.ownPrev, slack)
	if peer := a.cfg.Ports.PeerOf(n); peer.Kind == paths.SwitchPeer {
		if m, ok := a.cfg.Ports.Number(peer.Node, peer.Port.Port); ok && a.usable(m) {
			a.compare(&a.link[n], a.sums.sums[m].in, s.out, 0, slack+a.slackOf(m))
		}
	}
}

func (a *Auditor) compare(s **series, x, ref amount, own uint64, slack float64) {
	if *s == nil {
		*s = &series{}
	}
	b := difference(x, amount{}, ref, amount{}, slack)
	b.own = float64(own)
	start := model.Time(a.slot * int64(a.cfg.Slot))
	(*s).add(&a.cfg, start, start.Add(a.cfg.Slot), b)
}

// now is the end of the slot that was analysed last.
func (a *Auditor) now() model.Time { return model.Time((a.slot + 1) * int64(a.cfg.Slot)) }

// Findings returns the sources that are wrong at present, ascending.
func (a *Auditor) Findings() (list []Finding) {
	for _, s := range a.order {
		if n := a.noted[s]; n.named {
			list = append(list, n.Finding)
		}
	}
	slices.SortFunc(list, func(x, y Finding) int { return x.Source.Compare(y.Source) })
	return list
}
