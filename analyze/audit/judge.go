package audit

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// Points of a link at which packets are counted, in the order in which they pass.
const (
	atPrevious = iota // by the flowset of the switch before
	atSender
	atTx
	atRx
	atReceiver
	atNext
)

// noted is a finding, and how often windows have shown it in sequence.
type noted struct {
	Finding
	windows int
	named   bool
}

// What a window adds to a finding, which is named from certain on: a difference of counts may
// be chance once.
const (
	likely  = 1
	certain = 2
)

// note notes that a window shows a finding.
func (a *Auditor) note(at model.Time, f Finding, weight int) {
	n := a.noted[f.Source]
	if n == nil {
		n = &noted{}
		a.noted[f.Source] = n
		a.order = append(a.order, f.Source)
	}
	if at.Sub(n.Last) > 2*a.cfg.Block && !n.named || n.State != f.State {
		n.windows = 0
	}
	if n.windows == 0 {
		f.First = at
	} else {
		f.First = n.First
	}
	if f.Last = at; at > n.Last || n.windows == 0 {
		n.windows += weight
	}
	n.Finding = f
	n.named = n.named || n.windows >= certain
}

// forgetOld forgets findings that no window shows any more.
func (a *Auditor) forgetOld() {
	now := a.now()
	a.order = slices.DeleteFunc(a.order, func(s Source) bool {
		old := now.Sub(a.noted[s].Last) > a.cfg.Hold
		if old {
			delete(a.noted, s)
		}
		return old
	})
}

// judgeSome judges a part of the ports, so that each is judged once per block.
func (a *Auditor) judgeSome() {
	parts := int64(max(a.cfg.Block/a.cfg.Slot, 1))
	for n := uint32(a.slot % parts); n < uint32(a.cfg.Ports.Len()); n += uint32(parts) {
		switch a.cfg.Ports.PeerOf(n).Kind {
		case paths.SwitchPeer, paths.HostPeer:
			a.judgePort(n)
		}
	}
}

func (a *Auditor) judgePort(n uint32) {
	if a.history[n] == nil {
		return
	}
	a.judgeSilence(n)
	var buf [8]count
	for q, least := range [quantities]float64{a.cfg.PacketShare, a.cfg.ByteShare} {
		if c := (chain{counts: buf[:0], least: least}); a.outChain(&c, n, q) {
			a.conclude(&c, n)
		}
		if c := (chain{counts: buf[:0], least: least}); a.cfg.Ports.PeerOf(n).Kind == paths.HostPeer && a.inChain(&c, n, q, 1, 0) {
			a.conclude(&c, n)
		}
	}
}

// outChain collects what was counted of the packets that left by a port.
func (a *Auditor) outChain(c *chain, n uint32, q int) bool {
	now, port := a.now(), a.cfg.Ports.Port(n)
	if s := a.prev[n]; s != nil {
		c.add(atPrevious, 0, s.ratio(&a.cfg, q, now), Source{}, true)
	}
	c.add(atSender, 0, ratio{1, 0, true}, Source{Port: model.Port{Node: port.Node}}, false)
	for _, k := range a.counterOf[n] {
		if t := &k.newest; !t.Sampler && (q == packets && t.HasPackets || q == bytes && t.HasBytes) {
			if r := k.tx.ratio(&a.cfg, q, now); c.add(atTx, 0, r, Source{port, [...]Kind{TxPackets, TxBytes}[q], k.key.protocol}, false) {
				c.counts[len(c.counts)-1].far = k.far.ratio(&a.cfg, q, now)
			}
		}
	}
	s, peer := a.link[n], a.cfg.Ports.PeerOf(n)
	if peer.Kind != paths.SwitchPeer || s == nil {
		return true
	}
	r := s.ratio(&a.cfg, q, now)
	if m, ok := a.cfg.Ports.Number(peer.Node, peer.Port.Port); ok && r.ok {
		c.link = r.err
		a.inChain(c, m, q, r.value, 1)
	}
	return true
}

// inChain adds what was counted of the packets that came in by a port, of which the flowset
// has a share of those that were sent.
func (a *Auditor) inChain(c *chain, n uint32, q int, share float64, side int) bool {
	now, port := a.now(), a.cfg.Ports.Port(n)
	scaled := func(r ratio) ratio { return ratio{r.value * share, r.err * share, r.ok} }
	for _, k := range a.counterOf[n] {
		if t := &k.newest; t.HasRx && (q == packets && t.HasPackets || q == bytes && t.HasBytes) {
			kind := [...]Kind{RxPackets, RxBytes}[q]
			if t.Sampler {
				kind = Pool
			}
			c.add(atRx, side, scaled(k.rx.ratio(&a.cfg, q, now)), Source{port, kind, k.key.protocol}, false)
		}
	}
	c.add(atReceiver, side, ratio{share, 0, true}, Source{Port: model.Port{Node: port.Node}}, false)
	if s := a.next[n]; s != nil {
		c.add(atNext, side, scaled(s.ratio(&a.cfg, q, now)), Source{}, true)
	}
	return true
}

func (c *chain) add(point, side int, r ratio, s Source, witness bool) bool {
	if r.ok {
		c.counts = append(c.counts, count{point: point, ratio: r, side: side, witness: witness, source: s})
	}
	return r.ok
}

// silentShare is the share of its packets that a counter has at most if it counts none.
const silentShare = -0.99

// conclude notes the source that the counts of a link show to be wrong.
func (a *Auditor) conclude(c *chain, n uint32) {
	at, share, ok := c.judge()
	if !ok {
		return
	}
	f := Finding{Source: c.counts[at].source, Share: share, At: a.cfg.Ports.Port(n), Witnesses: len(c.counts) - 1}
	if f.Source.Kind == Flowset && f.Source.Port.Node != f.At.Node {
		f.At = a.cfg.Ports.PeerOf(n).Port
	}
	if share < silentShare {
		f.State, f.Share = Silent, 0
	}
	a.note(a.now(), f, likely)
}

// judgeSilence notes counters that are not reported any more while packets pass, and flowsets
// of switches whose counters go on.
func (a *Auditor) judgeSilence(n uint32) {
	now, port := a.now(), a.cfg.Ports.Port(n)
	h := a.history[n]
	active := h.count > 0 && a.slot-h.slots[(h.count-1)%keptSlots].slot < int64(a.cfg.Block/a.cfg.Slot)
	for _, k := range a.counterOf[n] {
		if k.key.sampler {
			continue // samples come at random
		}
		age := now.Sub(k.newest.At)
		if k.interval > 0 && active && age > max(a.cfg.SilentAfter, 4*k.interval) {
			kind := TxPackets
			if !k.newest.HasPackets {
				kind = TxBytes
			}
			a.note(now, Finding{Source: Source{port, kind, k.key.protocol}, State: Silent, At: port}, certain)
		}
		lost := time.Duration(a.slot-a.reportedAt[port.Node]) * a.cfg.Slot
		if a.reportedAt[port.Node] != 0 && lost > a.cfg.SilentAfter && now.Sub(k.moved) < lost/2 {
			a.note(now, Finding{Source: Source{Port: model.Port{Node: port.Node}}, State: Silent, At: port}, certain)
		}
	}
}
