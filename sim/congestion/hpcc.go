package congestion

import (
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// HPCCParams are the constants of HPCC.
type HPCCParams struct {
	Target  float64    `yaml:"target-utilization"` // of the most loaded hop
	Stages  uint32     `yaml:"stages"`             // additive increases before a multiplicative one
	AI      model.Rate `yaml:"ai"`                 // additive increase
	MinRate model.Rate `yaml:"min-rate"`
	Fast    bool       `yaml:"fast-react"` // react to every acknowledgement, not only once a round trip
	PerHop  bool       `yaml:"multi-rate"` // a rate for each hop, of which the least counts
	Sampled bool       `yaml:"sampled"`    // between round trips, ignore hops without a queue
	Multi   uint32     `yaml:"int-multi"`  // coarsens the units that switches write
}

// DefaultHPCC returns the constants of the HPCC simulator.
func DefaultHPCC() *HPCCParams {
	return &HPCCParams{
		Target: 0.95, Stages: 5, AI: 50 * model.Mbps, MinRate: 100 * model.Mbps, Fast: true, PerHop: true,
		Multi: 1,
	}
}

// Check reports constants that cannot work.
func (p *HPCCParams) Check() error {
	switch {
	case !(p.Target > 0 && p.Target <= 1):
		return fmt.Errorf("hpcc: target utilization %v, want above 0 and at most 1", p.Target)
	case p.AI < 0 || p.MinRate < 1:
		return fmt.Errorf("hpcc: increase %v and min rate %v, want at least 0b/s and 1b/s", p.AI, p.MinRate)
	case p.Multi < 1 || p.Multi > 1<<16:
		return fmt.Errorf("hpcc: int multi %d, want 1 to %d", p.Multi, 1<<16)
	}
	return nil
}

// HPCC computes the load of the most loaded hop from in-band telemetry, and
// steers it to the target utilization.
type HPCC struct {
	ackDriven
	p     *HPCCParams
	f     Flow
	rtt   uint64 // BaseRTT in ns
	known int64  // acknowledgements beyond it report on packets of the newest rate; 0: none has come
	last  [MaxHops]hop

	one  track
	each [MaxHops]track
}

// track is the control of a rate: of the whole path, or of one hop.
type track struct {
	rate  model.Rate // at the last round trip
	load  float64    // smoothed over a round trip
	stage uint32
}

// Traits is Params'.
func (p *HPCCParams) Traits() Traits {
	return Traits{Name: "hpcc", Acks: true, INTMulti: p.Multi, PaceAtLineRate: true, Repace: true}
}

// New is Params'. The control keeps p.
func (p *HPCCParams) New(f Flow) Control { return newHPCC(p, f) }

func newHPCC(p *HPCCParams, f Flow) *HPCC {
	h := &HPCC{p: p, f: f, rtt: uint64(f.BaseRTT / engine.Nanosecond), ackDriven: ackDriven{f.Line}}
	h.one = track{rate: f.Line, load: 1}
	for i := range h.each {
		h.each[i] = h.one
	}
	return h
}

// OnAck is Control's.
func (h *HPCC) OnAck(a *Ack) model.Rate {
	full := a.Seq > h.known // news about a whole round trip
	if !full && !h.p.Fast || a.INT == nil {
		return h.rate
	}
	if h.known == 0 {
		h.known = a.Next
		h.last = a.INT.hops
		return h.rate
	}
	if a.INT.n <= MaxHops {
		h.update(a.INT, full)
	}
	if full {
		h.known = max(h.known, a.Next)
	}
	return h.rate
}

func (h *HPCC) update(s *Stack, full bool) {
	var news [MaxHops]bool
	any := false
	most, over := 0.0, uint64(0) // the highest load, and the time it was measured over
	for i := range s.n {
		now, old := &s.hops[i], &h.last[i]
		if h.p.Sampled && !full && now.queue == 0 {
			continue
		}
		news[i], any = true, true
		u, ns := h.loadOf(now, old)
		if h.p.PerHop {
			h.each[i].smooth(u, ns, h.rtt)
		} else if u > most {
			most, over = u, ns
		}
		*old = *now
	}
	if !any {
		return
	}
	if !h.p.PerHop {
		h.one.smooth(most, over, h.rtt)
		h.rate = h.one.step(h, full)
		return
	}
	least := h.f.Line
	for i := range s.n {
		if news[i] {
			least = min(least, h.each[i].step(h, full))
		} else {
			least = min(least, h.each[i].rate)
		}
	}
	h.rate = least
}

// loadOf returns the utilization of a port between two packets plus its queue
// as a share of the window.
func (h *HPCC) loadOf(now, old *hop) (load float64, ns uint64) {
	ns, bytes := now.since(old, h.p.Multi)
	line := float64(now.rate)
	sent := float64(bytes*8) / (float64(ns) * 1e-9)
	queued := float64(min(now.queued(h.p.Multi), old.queued(h.p.Multi)))
	return sent/line + queued*float64(h.f.Line)/line/float64(h.f.Window), ns
}

// smooth averages in a load that was measured over ns.
func (t *track) smooth(u float64, ns, rtt uint64) {
	ns = min(ns, rtt)
	t.load = (float64(t.load*float64(rtt-ns)) + float64(u*float64(ns))) / float64(rtt)
}

// step returns the rate for a load. Only a full round trip makes it the one that the
// next is computed from.
func (t *track) step(h *HPCC, full bool) model.Rate {
	over := t.load / h.p.Target
	rate, stage := t.rate, t.stage+1
	if over >= 1 || t.stage >= h.p.Stages {
		stage = 0
		// An idle hop would allow an infinite rate.
		if q := float64(t.rate) / over; q < math.MaxInt64/2 {
			rate = model.Rate(q)
		} else {
			rate = h.f.Line
		}
	}
	rate = bounded(rate+h.p.AI, h.p.MinRate, h.f.Line)
	if full {
		t.rate, t.stage = rate, stage
	}
	return rate
}
