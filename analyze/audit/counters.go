package audit

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// Totals is what a port has counted since it came up. Pairs are of packets and bytes.
type Totals struct {
	Port     model.Port
	Protocol portstat.Source
	At       model.Time // by the switch's clock
	// What is there: a switch may count bytes alone.
	HasPackets, HasBytes bool
	HasRx                bool
	Sampler              bool // of the port's sampler, which counts packets that the port received
	TxPackets, TxBytes   uint64
	RxPackets, RxBytes   uint64
}

func (t *Totals) tx() amount { return amount{t.TxPackets, t.TxBytes} }
func (t *Totals) rx() amount { return amount{t.RxPackets, t.RxBytes} }

// counterKey is the counters of one port that come by one protocol.
type counterKey struct {
	port     uint32 // its number
	protocol portstat.Source
	sampler  bool
}

// counter compares the counters of a port with the flowset of its switch. Both have the same
// clock.
type counter struct {
	key      counterKey
	newest   Totals
	interval time.Duration
	moved    model.Time // when totals were higher than before
	pending  []Totals   // whose slots are not analysed yet, in order of time

	has     bool // base is set
	base    Totals
	baseOut amount // by the flowset, up to base
	baseIn  amount
	tx, rx  series
	// far compares what was sent with what the peer's flowset has: no queue is in between.
	far     series
	baseFar amount
	// untabled is what the flowsets of the port and its peer had not, up to base.
	untabled, farUntabled float64
}

// maxPending bounds the readings of a port that wait for flowsets.
const maxPending = 32

// AddTotals adds what a port has counted. Totals of a port and protocol come in order of time;
// more than one per slot are not needed and left out.
func (a *Auditor) AddTotals(t *Totals) {
	n, ok := a.cfg.Ports.Number(t.Port.Node, t.Port.Port)
	if !ok || t.Port.Port == 0 {
		return
	}
	key := counterKey{n, t.Protocol, t.Sampler}
	c := a.counters[key]
	if c == nil {
		c = &counter{key: key}
		a.counters[key] = c
		a.counterList = append(a.counterList, c)
		a.counterOf[n] = append(a.counterOf[n], c)
	}
	if c.newest.At != 0 {
		if t.TxPackets < c.newest.TxPackets || t.TxBytes < c.newest.TxBytes || t.RxPackets < c.newest.RxPackets || t.RxBytes < c.newest.RxBytes {
			a.reset(c, t)
			return
		}
		since := t.At.Sub(c.newest.At)
		if since < a.cfg.Slot {
			return
		}
		if c.interval = since; t.TxBytes > c.newest.TxBytes || t.TxPackets > c.newest.TxPackets {
			c.moved = t.At
		}
	}
	c.newest = *t
	if c.pending = append(c.pending, *t); len(c.pending) > maxPending {
		c.pending = append(c.pending[:0], c.pending[1:]...)
	}
}

// AddSample adds what a sample says of the packets that its port's sampler has seen.
func (a *Auditor) AddSample(s *portstat.Sample) {
	if s.Has.All(portstat.HasPool) && s.In != 0 {
		a.AddTotals(&Totals{
			Port: model.Port{Node: s.Node, Port: s.In}, Protocol: s.Source, At: s.At, HasPackets: true, HasRx: true, Sampler: true, RxPackets: s.Pool,
		})
	}
}

// AddReading adds what a port counted in an interval.
func (a *Auditor) AddReading(r *portstat.Reading) {
	if !r.Has.All(portstat.HasPackets) && !r.Has.All(portstat.HasBytes) {
		return
	}
	t := Totals{
		Port: r.Port, Protocol: r.Source, At: r.To, HasPackets: r.Has.All(portstat.HasPackets), HasBytes: r.Has.All(portstat.HasBytes), HasRx: true,
	}
	n, _ := a.cfg.Ports.Number(r.Port.Node, r.Port.Port)
	if c := a.counters[counterKey{n, r.Source, false}]; c == nil || c.newest.At != r.From {
		// What it counted before, or in a gap, is not known: it counts from From on.
		start := t
		if start.At = r.From; c != nil {
			c.forget()
			start.TxPackets, start.TxBytes, start.RxPackets, start.RxBytes = c.newest.TxPackets, c.newest.TxBytes, c.newest.RxPackets, c.newest.RxBytes
		}
		a.AddTotals(&start)
	}
	if c := a.counters[counterKey{n, r.Source, false}]; c != nil {
		t.TxPackets, t.TxBytes = c.newest.TxPackets+r.TxPackets, c.newest.TxBytes+r.TxBytes
		t.RxPackets, t.RxBytes = c.newest.RxPackets+r.RxPackets, c.newest.RxBytes+r.RxBytes
		a.AddTotals(&t)
	}
}

// forget has the counter begin anew.
func (c *counter) forget() { c.pending, c.has = c.pending[:0], false }

// reset notes that totals fell, and begins anew.
func (a *Auditor) reset(c *counter, t *Totals) {
	c.forget()
	c.newest = *t
	c.pending = append(c.pending, *t)
	kind := TxPackets
	switch {
	case t.Sampler:
		kind = Pool
	case !t.HasPackets:
		kind = TxBytes
	}
	a.note(t.At, Finding{Source: Source{t.Port, kind, t.Protocol}, State: Resetting, At: t.Port}, certain)
}

// resolve compares readings with flowsets, as far as slots are analysed.
func (a *Auditor) resolve(c *counter) {
	done := 0
	for i := range c.pending {
		t := &c.pending[i]
		if a.slotOf(t.At) > a.slot {
			break
		}
		done++
		in, out, ok := a.flowsetUpTo(c.key.port, t.At)
		far, peer, linked := a.peerUpTo(c.key.port, t.At)
		if !ok {
			c.has = false
			continue
		}
		untabled, farUntabled := a.untabledAt(c.key.port), 0.0
		if linked {
			farUntabled = a.untabledAt(peer)
		}
		slack := untabled - c.untabled
		if c.has && !a.badSince(c.key.port, c.base.At) {
			c.tx.add(&a.cfg, c.base.At, t.At, difference(t.tx(), c.base.tx(), out, c.baseOut, slack))
			if t.HasRx {
				c.rx.add(&a.cfg, c.base.At, t.At, difference(t.rx(), c.base.rx(), in, c.baseIn, slack))
			}
		}
		if c.has && linked && !a.badSince(peer, c.base.At) {
			c.far.add(&a.cfg, c.base.At, t.At, difference(t.tx(), c.base.tx(), far, c.baseFar, farUntabled-c.farUntabled))
		}
		c.base, c.baseIn, c.baseOut, c.baseFar, c.has = *t, in, out, far, true
		c.untabled, c.farUntabled = untabled, farUntabled
	}
	c.pending = append(c.pending[:0], c.pending[done:]...)
}

// difference is what counter and flowset counted between two readings.
func difference(to, from, refTo, refFrom amount, slack float64) block {
	x, ref := to.minus(from), refTo.minus(refFrom)
	return block{
		x:   [quantities]float64{float64(x[packets]), float64(x[bytes])},
		ref: [quantities]float64{float64(ref[packets]), float64(ref[bytes])}, slack: slack,
	}
}
