package mmu

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestHeadroomFor(t *testing.T) {
	for _, tc := range []struct {
		rate  model.Rate
		delay time.Duration
		mtu   model.Bytes
		want  model.Bytes
	}{
		{100 * model.Gbps, time.Microsecond, 1500, 25000 + 3*1524 + 672},
		{400 * model.Gbps, 0, 9216, 3*9240 + 672},
		{3 * model.Gbps, 1, 64, 1 + 3*88 + 672}, // 0.75 bytes round up
		{800 * model.Gbps, 10 * time.Second, 1500, 2000000000000 + 3*1524 + 672},
	} {
		if got := HeadroomFor(tc.rate, tc.delay, tc.mtu); got != tc.want {
			t.Errorf("HeadroomFor(%v, %v, %v) = %d; want %d", tc.rate, tc.delay, tc.mtu, got, tc.want)
		}
	}
}

// wire is one link into a switch whose buffer is always full: a sender that
// fills the wire, PFC back to it, and data in the other direction that a PAUSE
// must wait for. Times are picoseconds.
type wire struct {
	rate     model.Rate
	delay    int64
	overhead int64 // of each frame on the wire
	buf      *Buffer
	prios    []model.Priority

	size    func() model.Bytes // of the sender's next packet
	back    func() model.Bytes // of the next packet in the other direction
	choose  func(open []model.Priority) model.Priority
	drain   func() bool // after an arrival: whether the switch sends a packet on
	storm   bool        // every pause follows one of each other priority
	dropped int
	most    model.Bytes // headroom used

	now      int64
	paused   [Priorities]bool // pause frames that the sender has received
	sendFree int64
	backFree int64
	waiting  []order // PFC frames, at most one per priority
	onWire   []arrival
	orders   []order
	inside   []arrival
}

type arrival struct {
	at   int64
	prio model.Priority
	size model.Bytes
}

type order struct {
	at   int64
	prio model.Priority
	stop bool
}

// duration is the time to send n bytes and what surrounds them, rounded up.
func (w *wire) duration(n model.Bytes) int64 {
	bits := (int64(n) + w.overhead) * 8
	return (bits*1e12 + int64(w.rate) - 1) / int64(w.rate)
}

// run runs until that many packets have arrived or the sender is paused for
// good.
func (w *wire) run(packets int) {
	for packets > 0 {
		var open []model.Priority
		for _, p := range w.prios {
			if !w.paused[p] {
				open = append(open, p)
			}
		}
		next := w.backFree
		if len(open) > 0 {
			next = min(next, w.sendFree)
		}
		if len(w.onWire) > 0 {
			next = min(next, w.onWire[0].at)
		}
		if len(w.orders) > 0 {
			next = min(next, w.orders[0].at)
		}
		if len(open) == 0 && len(w.onWire)+len(w.orders)+len(w.waiting) == 0 {
			if len(w.inside) == 0 {
				return
			}
			w.leave()
			continue
		}
		w.now = max(w.now, next)
		// The worst order of what happens at the same time: the sender starts a
		// packet, and a frame in the other direction starts, before anything
		// that stops or precedes them.
		switch {
		case len(open) > 0 && w.sendFree <= w.now:
			a := arrival{prio: w.choose(open), size: w.size()}
			w.sendFree = w.now + w.duration(a.size)
			a.at = w.sendFree + w.delay
			w.onWire = append(w.onWire, a)
		case w.backFree <= w.now:
			if len(w.waiting) == 0 {
				w.backFree = w.now + w.duration(w.back())
				break
			}
			o := w.waiting[0]
			w.waiting = w.waiting[1:]
			w.backFree = w.now + w.duration(60)
			o.at = w.backFree + w.delay
			w.orders = append(w.orders, o)
		case len(w.onWire) > 0 && w.onWire[0].at <= w.now:
			packets--
			w.arrive()
		default:
			w.paused[w.orders[0].prio] = w.orders[0].stop
			w.orders = w.orders[1:]
		}
	}
}

func (w *wire) arrive() {
	a := w.onWire[0]
	w.onWire = w.onWire[1:]
	if w.buf.Admit(1, a.prio, a.size) {
		w.inside = append(w.inside, a)
	} else {
		w.dropped++
	}
	if w.buf.ShouldPause(1, a.prio) {
		w.buf.SetPaused(1, a.prio, true)
		if w.storm {
			for p := range model.Priority(Priorities) {
				if p != a.prio {
					w.ask(order{prio: p, stop: w.buf.Paused(1, p)})
				}
			}
		}
		w.ask(order{prio: a.prio, stop: true})
	}
	_, _, h := w.buf.Usage(1, a.prio)
	w.most = max(w.most, h)
	if len(w.inside) > 0 && w.drain() {
		w.leave()
	}
}

// leave sends the oldest packet on.
func (w *wire) leave() {
	a := w.inside[0]
	w.inside = w.inside[1:]
	w.buf.Release(1, a.prio, a.size)
	if w.buf.ShouldResume(1, a.prio) {
		w.buf.SetPaused(1, a.prio, false)
		w.ask(order{prio: a.prio})
	}
}

// ask queues a PFC frame in place of one that still waits for its priority.
func (w *wire) ask(o order) {
	for i := range w.waiting {
		if w.waiting[i].prio == o.prio {
			w.waiting[i] = o
			return
		}
	}
	w.waiting = append(w.waiting, o)
}

func linkConfig(headroom model.Bytes, lossless uint8, shared model.Bytes) Config {
	c := Config{Reserve: 200, ResumeOffset: 300, Accounted: 0xff, Lossless: lossless, Ports: []Port{{Headroom: headroom, Alpha: Alpha{1, 2}}}}
	c.Buffer = shared - c.SharedBytes()
	return c
}

// TestHeadroomLosesNothing lets random senders with random links run into a
// switch that drains slowly.
func TestHeadroomLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rate := rapid.SampledFrom([]model.Rate{1, 3, 10, 25, 40, 100, 400, 800}).Draw(t, "Gb/s") * model.Gbps
		delay := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ns"))
		mtu := rapid.IntRange(64, 9216).Draw(t, "mtu")
		count := rapid.IntRange(1, Priorities).Draw(t, "priorities")
		drain := rapid.IntRange(0, 90).Draw(t, "drain %")
		size := func(small int) func() model.Bytes {
			return func() model.Bytes {
				if rng.IntN(100) < small {
					return model.Bytes(60 + rng.IntN(mtu-60+1))
				}
				return model.Bytes(mtu)
			}
		}
		w := &wire{
			rate: rate, delay: delay.Nanoseconds() * 1000,
			overhead: rapid.SampledFrom([]int64{0, frameOverhead}).Draw(t, "overhead"),
			size:     size(rapid.IntRange(0, 100).Draw(t, "small %")),
			back:     size(rapid.IntRange(0, 100).Draw(t, "small % back")),
			choose:   func(open []model.Priority) model.Priority { return open[rng.IntN(len(open))] },
			drain:    func() bool { return rng.IntN(100) < drain },
			storm:    rapid.Bool().Draw(t, "storm"),
		}
		for p := range count {
			w.prios = append(w.prios, model.Priority(p))
		}
		need := HeadroomFor(rate, delay, model.Bytes(mtu))
		b, err := New(linkConfig(need, uint8(1<<count-1), model.Bytes(rapid.IntRange(1, 4*mtu).Draw(t, "shared"))))
		if err != nil {
			t.Fatal(err)
		}
		w.buf = b
		w.run(1500)
		if w.dropped > 0 {
			t.Fatalf("%d packets lost with a headroom of %v, of which %v were used", w.dropped, need, w.most)
		}
	})
}

// worst is the headroom used by full-sized packets over all phases of what the
// PAUSE waits for.
func worst(t *testing.T, rate model.Rate, delay time.Duration, mtu, headroom model.Bytes) (most model.Bytes, dropped int) {
	for phase := range 64 {
		started := false
		w := &wire{
			rate: rate, delay: delay.Nanoseconds() * 1000, overhead: frameOverhead, prios: []model.Priority{3},
			size: func() model.Bytes { return mtu },
			back: func() model.Bytes {
				if !started {
					started = true
					return mtu * model.Bytes(phase) / 64
				}
				return mtu
			},
			choose: func(open []model.Priority) model.Priority { return open[0] },
			drain:  func() bool { return false },
			storm:  true,
			buf:    mustNew(t, linkConfig(headroom, 1<<3, 4*mtu)),
		}
		w.run(400)
		most, dropped = max(most, w.most), dropped+w.dropped
	}
	return most, dropped
}

// TestHeadroomIsNotWasteful finds the bound nearly reached: what is missing is
// less than the packet that might just have begun.
func TestHeadroomIsNotWasteful(t *testing.T) {
	for _, delay := range []time.Duration{0, 10, 1000, 5000} {
		const rate, mtu = 100 * model.Gbps, 1500
		need := HeadroomFor(rate, delay, mtu)
		most, dropped := worst(t, rate, delay, mtu, need)
		// Headroom counts frames, the derivation what they take on the wire.
		if slack := need - most*(mtu+frameOverhead)/mtu; dropped > 0 || slack < 0 || slack > mtu+frameOverhead {
			t.Errorf("delay %v: %d lost, %v of %v used; want none lost and all but a packet used", delay, dropped, most, need)
		}
	}
}

// TestHPCCHeadroomLosesOnShortLinks is why its formula is not the default.
func TestHPCCHeadroomLosesOnShortLinks(t *testing.T) {
	const rate, mtu = 100 * model.Gbps, 1048
	for delay, loses := range map[time.Duration]bool{10: true, 200: true, 1000: false} {
		have := HPCCHeadroom(rate, delay)
		if most, dropped := worst(t, rate, delay, mtu, have); dropped > 0 != loses {
			t.Errorf("delay %v: %d lost with HPCC's headroom of %v, of which %v were used; want loss %v", delay, dropped, have, most, loses)
		}
	}
}
