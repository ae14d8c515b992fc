package hpcc

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
)

// The original's hosts: queue pairs, NICs, congestion control.

type tqp struct {
	flow      int
	port      *tport
	home      *tport
	key, back model.FlowKey
	pg        int
	size      int64
	nxt, una  int64
	rate, top model.Rate
	win, rtt  int64
	nextAvail int64
	lastSize  int64
	done      bool
	end       int64

	expected, nackAfter, nackFor int64 // of the receiver

	alpha                float64
	cnpAlpha, cnpCut     bool
	seenCNP              bool
	target               model.Rate
	steps                int
	tAlpha, tCut, tRaise *event

	known      int64
	cur        model.Rate
	u          float64
	stage      int
	old        []thop
	each       []thopState
	lastRTT    int64
	diff       float64
	high       int64
	lowered    bool
	marks, lot int64
}

type thop struct {
	time, bytes, queue int64
	rate               model.Rate
}

type thopState struct {
	u     float64
	rc    model.Rate
	stage int
}

func (w *original) begin(i int) {
	f := &w.s.Flows[i]
	q := &tqp{flow: i, key: w.s.key(f), pg: int(f.Priority), size: int64(f.Bytes), u: 1, alpha: 1, nextAvail: w.now}
	q.back = q.key.Reverse()
	first, _ := w.s.Routes.NextHop(f.Src, q.key)
	home, _ := w.s.Routes.NextHop(f.Dst, q.back)
	q.port, q.home = w.nodes[f.Src].ports[first-1], w.nodes[f.Dst].ports[home-1]
	q.rate, q.top, q.cur, q.target = q.port.rate, q.port.rate, q.port.rate, q.port.rate
	for range 5 {
		q.each = append(q.each, thopState{1, q.port.rate, 0})
	}
	q.old = make([]thop, 5)
	if w.c.Window {
		q.win, q.rtt = w.base(f.Src, f.Dst)
		if w.c.GlobalWindow {
			q.win, q.rtt = w.largest()
		}
	}
	w.qps = append(w.qps, q)
	q.port.qps = append(q.port.qps, q)
	w.kick(q.port)
}

// base is the window and the round trip of a pair.
func (w *original) base(src, dst model.NodeID) (win, rtt int64) {
	key := model.FlowKey{Src: w.s.Fabric.Node(src).IPv4, Dst: w.s.Fabric.Node(dst).IPv4, Proto: model.UDP}
	bw := int64(1 << 62)
	for at := src; at != dst; {
		port, _ := w.s.Routes.NextHop(at, key)
		p := w.nodes[at].ports[port-1]
		rtt += 2*p.delay + int64(w.c.MTU)*1e9*8/int64(p.rate)
		bw = min(bw, int64(p.rate))
		at = p.peer.node.id
	}
	return rtt * bw / 1e9 / 8, rtt
}

// largest is the same of all pairs.
func (w *original) largest() (win, rtt int64) {
	if w.maxWin == 0 {
		for _, a := range w.s.Fabric.Hosts() {
			for _, b := range w.s.Fabric.Hosts() {
				if a != b {
					win, rtt := w.base(a, b)
					w.maxWin, w.maxRTT = max(w.maxWin, win), max(w.maxRTT, rtt)
				}
			}
		}
	}
	return w.maxWin, w.maxRTT
}

func (q *tqp) bound(w *original) bool {
	win := q.win
	if w.c.VarWindow {
		win = max(1, q.win*int64(q.rate)/int64(q.top))
	}
	return q.win != 0 && q.nxt-q.una >= win
}

func (w *original) fromNIC(p *tport) *tpkt {
	class := 3 // whose pauses hold acknowledgements up, whatever theirs is
	if w.c.AckControl {
		class = 0
	}
	if !p.paused[class] && len(p.acks) > 0 {
		a := p.acks[0]
		p.acks = p.acks[1:]
		return a
	}
	n, pick, done := len(p.qps), -1, -1
	for i := 1; i <= n; i++ {
		k := (i + p.last) % n
		q := p.qps[k]
		if !p.paused[q.pg] && q.nxt < q.size && !q.bound(w) {
			if q.nextAvail > w.now {
				continue
			}
			pick = k
			break
		} else if q.una >= q.size && (done < 0 || k < done) {
			done = k
		}
	}
	if done >= 0 {
		kept := append([]*tqp(nil), p.qps[:done]...)
		for k := done; k < n; k++ {
			if p.qps[k].una >= p.qps[k].size {
				continue
			}
			if k == pick {
				pick = len(kept)
			}
			kept = append(kept, p.qps[k])
		}
		p.qps = kept
	}
	if pick >= 0 {
		p.last = pick
		q := p.qps[pick]
		pay := min(int64(w.c.MTU), q.size-q.nxt)
		pkt := &tpkt{kind: tdata, size: pay + int64(w.c.Overhead), pg: q.pg, key: q.key, qp: q, seq: q.nxt, payload: pay, ts: w.now}
		q.nxt += pay
		return pkt
	}
	first := int64(1 << 62)
	for _, q := range p.qps {
		if q.nxt < q.size {
			first = min(first, q.nextAvail)
		}
	}
	if !p.nextSend.pending() && first < 1<<62 && first > w.now {
		p.nextSend = w.after(first-w.now, func() { w.kick(p) })
	}
	return nil
}

func (q *tqp) paced(w *original, size int64) {
	q.lastSize = size
	rate := q.rate
	if !w.c.RateBound {
		rate = q.top
	}
	q.nextAvail = w.now + txns(size, rate)
}

func (w *original) receive(p *tport, pkt *tpkt) {
	q := pkt.qp
	if pkt.kind != tdata {
		w.acked(q, pkt)
		return
	}
	kind := tack
	switch {
	case pkt.seq == q.expected:
		q.expected += pkt.payload
	case pkt.seq > q.expected && (w.now >= q.nackAfter || q.nackFor != q.expected):
		q.nackAfter, q.nackFor, kind = w.now+500_000, q.expected, tnack
	default:
		return
	}
	q.home.acks = append(q.home.acks, &tpkt{
		kind: kind, size: int64(w.c.AckSize), pg: q.pg, key: q.back, qp: q, seq: q.expected,
		carriesCE: pkt.marked, hops: pkt.hops, ts: pkt.ts,
	})
	w.kick(q.home)
}

func (w *original) acked(q *tqp, a *tpkt) {
	if q.done {
		return
	}
	q.una = max(q.una, a.seq)
	if q.una >= q.size {
		q.done, q.end = true, w.now
		w.finished++
		for _, t := range []*event{q.tAlpha, q.tCut, q.tRaise} {
			if t != nil {
				t.off = true
			}
		}
	}
	if a.kind == tnack {
		q.nxt = q.una
	}
	if !w.s.Flows[q.flow].NoCC {
		switch w.c.Congestion.(type) {
		case *congestion.DCQCNParams:
			if a.carriesCE && !q.done {
				w.cnp(q)
			}
		case *congestion.HPCCParams:
			w.hpcc(q, a)
		case *congestion.TIMELYParams:
			w.timely(q, a)
		case *congestion.DCTCPParams:
			w.dctcp(q, a)
		}
	}
	w.kick(q.port)
}

func (w *original) cnp(q *tqp) {
	d := w.c.Congestion.(*congestion.DCQCNParams)
	first := !q.seenCNP
	q.cnpAlpha, q.cnpCut, q.seenCNP = !first, true, true
	if !first {
		return
	}
	q.alpha = 1
	var weigh, check, raise func()
	weigh = func() {
		q.alpha = float64((1 - d.Gain) * q.alpha)
		if q.cnpAlpha {
			q.alpha += d.Gain
		}
		q.cnpAlpha = false
		q.tAlpha = w.after(d.AlphaInterval.Nanoseconds(), weigh)
	}
	raise = func() {
		q.tRaise = w.after(d.IncreaseInterval.Nanoseconds(), raise)
		if q.steps == d.FastRecovery {
			q.target += d.AI
		} else if q.steps > d.FastRecovery {
			q.target += d.HAI
		}
		q.target = min(q.target, q.port.rate)
		q.rate = q.rate/2 + q.target/2
		q.steps++
	}
	check = func() {
		q.tCut = w.after(d.DecreaseInterval.Nanoseconds(), check)
		if !q.cnpCut {
			return
		}
		if d.ClampTarget || q.steps > 0 {
			q.target = q.rate
		}
		q.rate = max(d.MinRate, model.Rate(float64(q.rate)*(1-q.alpha/2)))
		q.steps, q.cnpCut = 0, false
		if q.tRaise != nil {
			q.tRaise.off = true
		}
		q.tRaise = w.after(d.IncreaseInterval.Nanoseconds(), raise)
	}
	q.tAlpha = w.after(d.AlphaInterval.Nanoseconds(), weigh)
	q.tCut = w.after(d.DecreaseInterval.Nanoseconds()+1, check)
	q.target = q.rate
}

func (w *original) hpcc(q *tqp, a *tpkt) {
	p := w.c.Congestion.(*congestion.HPCCParams)
	fast := a.seq <= q.known
	if fast && !p.Fast {
		return
	}
	if q.known == 0 {
		q.known = q.nxt
		copy(q.old, a.hops)
		return
	}
	if len(a.hops) <= 5 {
		most, dt, rate := 0.0, int64(0), q.top
		for i, h := range a.hops {
			o := q.old[i]
			tau := (h.time - o.time) & (1<<24 - 1)
			sent := float64((h.bytes-o.bytes)&(1<<20-1)*128*8) / (float64(tau) * 1e-9)
			u := sent/float64(h.rate) + float64(min(h.queue, o.queue)*80)*float64(q.top)/float64(h.rate)/float64(q.win)
			if u > most {
				most, dt = u, tau
			}
			q.old[i] = h
			if p.PerHop {
				e := &q.each[i]
				t := min(tau, q.rtt)
				e.u = (e.u*float64(q.rtt-t) + u*float64(t)) / float64(q.rtt)
				r, stage := w.hpccRate(q, e.rc, e.u, e.stage)
				rate = min(rate, r)
				if !fast {
					e.rc, e.stage = r, stage
				}
			}
		}
		if !p.PerHop {
			dt = min(dt, q.rtt)
			q.u = (q.u*float64(q.rtt-dt) + most*float64(dt)) / float64(q.rtt)
			var stage int
			rate, stage = w.hpccRate(q, q.cur, q.u, q.stage)
			if !fast {
				q.cur, q.stage = rate, stage
			}
		}
		q.nextAvail += txns(q.lastSize, rate) - txns(q.lastSize, q.rate)
		if e := q.port.nextSend; e.pending() && q.nextAvail < e.at {
			e.off = true
			q.port.nextSend = w.after(max(0, q.nextAvail-w.now), func() { w.kick(q.port) })
		}
		q.rate = rate
	}
	if !fast {
		q.known = max(q.known, q.nxt)
	}
}

func (w *original) hpccRate(q *tqp, rate model.Rate, u float64, stage int) (model.Rate, int) {
	p := w.c.Congestion.(*congestion.HPCCParams)
	stage++
	if c := u / p.Target; c >= 1 || stage > int(p.Stages) {
		rate, stage = model.Rate(min(float64(rate)/c, 1e18)), 0
	}
	return min(max(rate+p.AI, p.MinRate), q.top), stage
}

func (w *original) timely(q *tqp, a *tpkt) {
	if a.seq <= q.known {
		return
	}
	rtt := w.now - a.ts
	if q.known != 0 {
		p := w.c.Congestion.(*congestion.TIMELYParams)
		q.diff = (1-p.Weight)*q.diff + p.Weight*float64(rtt-q.lastRTT)
		g, cut := q.diff/20_000, -1.0
		if rtt >= 50_000 {
			if rtt > 500_000 {
				cut = 1 - p.Beta*(1-500_000/float64(rtt))
			} else if g > 0 {
				cut = max(0, 1-p.Beta*g)
			}
		}
		switch {
		case cut >= 0:
			q.rate, q.stage = max(p.MinRate, model.Rate(float64(q.rate)*cut)), 0
		case q.stage < 5:
			q.rate = min(q.top, q.rate+p.AI)
			q.stage++
		default:
			q.rate = min(q.top, q.rate+p.HAI)
			q.stage++
		}
	}
	if q.nxt > q.known {
		q.known, q.lastRTT = q.nxt, rtt
	}
}

func (w *original) dctcp(q *tqp, a *tpkt) {
	p := w.c.Congestion.(*congestion.DCTCPParams)
	if a.carriesCE {
		q.marks++
	}
	fresh := a.seq > q.known
	if fresh {
		if q.known == 0 {
			q.lot = q.nxt/int64(w.c.MTU) + 1
		} else {
			q.alpha = (1-p.Gain)*q.alpha + p.Gain*min(1, float64(q.marks)/float64(q.lot))
			q.marks, q.lot = 0, (q.nxt-a.seq)/int64(w.c.MTU)+1
		}
		q.known = q.nxt
	}
	if q.lowered && a.seq > q.high {
		q.lowered = false
	}
	if a.carriesCE && !q.lowered {
		q.rate = max(p.MinRate, model.Rate(float64(q.rate)*(1-q.alpha/2)))
		q.lowered, q.high = true, q.nxt
	}
	if fresh && !q.lowered {
		q.rate = min(q.top, q.rate+p.AI)
	}
}
