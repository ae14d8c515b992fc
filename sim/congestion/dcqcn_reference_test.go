package congestion

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"pgregory.net/rapid"
)

// referenceDCQCN is DCQCN with timers that really run, one event each, in the order of
// time and of having been started. DCQCN must equal it.
type referenceDCQCN struct {
	p            DCQCNParams
	line         float64
	rate, target float64 // whole numbers
	alpha        float64

	queue   []event
	started int

	seen                    bool // the first CNP
	forAlpha, forRate       bool // a CNP since the last check
	timeSteps, byteSteps    int
	sent                    model.Bytes
	cuts, increases, checks int
}

type event struct {
	at     engine.Time
	number int
	kind   string
}

func (w *referenceDCQCN) start(at engine.Time, kind string) {
	w.started++
	w.queue = append(w.queue, event{at, w.started, kind})
}

func (w *referenceDCQCN) cancel(kind string) {
	kept := w.queue[:0]
	for _, e := range w.queue {
		if e.kind != kind {
			kept = append(kept, e)
		}
	}
	w.queue = kept
}

// until runs all timers due until now.
func (w *referenceDCQCN) until(now engine.Time) {
	for {
		first := -1
		for i, e := range w.queue {
			if e.at <= now && (first < 0 || e.at < w.queue[first].at || e.at == w.queue[first].at && e.number < w.queue[first].number) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		e := w.queue[first]
		w.queue = append(w.queue[:first], w.queue[first+1:]...)
		switch e.kind {
		case "alpha":
			w.start(e.at+engine.Of(w.p.AlphaInterval), "alpha")
			w.averageAlpha(w.forAlpha)
			w.forAlpha = false
		case "check":
			w.checks++
			w.start(e.at+engine.Of(w.p.DecreaseInterval), "check")
			if w.forRate {
				w.forRate = false
				if w.p.ClampTarget || w.timeSteps > 0 {
					w.target = w.rate
				}
				w.cut(e.at)
			}
		case "increase":
			w.start(e.at+engine.Of(w.p.IncreaseInterval), "increase")
			w.increase()
			w.timeSteps++
		}
	}
}

func (w *referenceDCQCN) averageAlpha(marked bool) {
	f := 0.
	if marked {
		f = 1
	}
	w.alpha = float64((1-w.p.Gain)*w.alpha) + w.p.Gain*f
}

func (w *referenceDCQCN) cut(now engine.Time) {
	w.cuts++
	w.rate = max(math.Floor(w.rate*(1-w.alpha/2)), float64(w.p.MinRate))
	w.timeSteps, w.byteSteps, w.sent = 0, 0, 0
	w.cancel("increase")
	w.start(now+engine.Of(w.p.IncreaseInterval), "increase")
}

func (w *referenceDCQCN) increase() {
	w.increases++
	var add model.Rate
	f := w.p.FastRecovery
	if w.p.Variant == Mellanox {
		if w.timeSteps == f {
			add = w.p.AI
		} else if w.timeSteps > f {
			add = w.p.HAI
		}
		w.target = min(w.target+float64(add), w.line)
		w.rate = math.Floor(w.rate/2) + math.Floor(w.target/2)
		return
	}
	if w.timeSteps >= f || w.byteSteps >= f {
		add = w.p.AI
	}
	if w.timeSteps > f && w.byteSteps > f && w.p.HAI > 0 {
		add = w.p.HAI
	}
	w.target = min(w.target+float64(add), w.line)
	w.rate = math.Ceil((w.rate + w.target) / 2)
}

func (w *referenceDCQCN) onCNP(now engine.Time) {
	w.until(now)
	first := !w.seen
	w.seen = true
	if w.p.Variant == Published {
		w.target = w.rate
		w.cut(now)
		w.averageAlpha(true)
		w.cancel("alpha")
		w.start(now+engine.Of(w.p.AlphaInterval), "alpha")
		return
	}
	w.forAlpha, w.forRate = true, true
	if first {
		w.forAlpha = false
		w.start(now+engine.Of(w.p.AlphaInterval), "alpha")
		w.start(now+engine.Of(w.p.DecreaseInterval)+engine.Nanosecond, "check")
		w.rate = math.Floor(w.rate * w.p.FirstRate)
		w.target = w.rate
	}
}

func (w *referenceDCQCN) onSent(now engine.Time, n model.Bytes) {
	w.until(now)
	if w.p.Variant != Published || w.p.ByteCounter == 0 || !w.seen {
		return
	}
	for w.sent += n; w.sent >= w.p.ByteCounter; w.sent -= w.p.ByteCounter {
		w.increase()
		w.byteSteps++
	}
}

func anyParams(t *rapid.T) DCQCNParams {
	us := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(1, most).Draw(t, label)) * time.Microsecond
	}
	p := DCQCNParams{
		Variant:          rapid.SampledFrom([]DCQCNVariant{Mellanox, Published}).Draw(t, "variant"),
		Gain:             rapid.SampledFrom([]float64{1. / 256, 1. / 16, 0.3}).Draw(t, "gain"),
		AlphaInterval:    us("alpha", 60),
		DecreaseInterval: us("decrease", 12),
		IncreaseInterval: us("increase", 60),
		ByteCounter:      model.Bytes(rapid.IntRange(0, 40).Draw(t, "byte counter")) * model.KB,
		FastRecovery:     rapid.IntRange(0, 5).Draw(t, "fast recovery"),
		AI:               model.Rate(rapid.IntRange(0, 1e9).Draw(t, "AI")),
		HAI:              model.Rate(rapid.IntRange(0, 1e10).Draw(t, "HAI")),
		MinRate:          model.Rate(rapid.IntRange(1, 1e9).Draw(t, "min")),
		ClampTarget:      rapid.Bool().Draw(t, "clamp"),
		FirstRate:        rapid.SampledFrom([]float64{1, 0.5, 0.7}).Draw(t, "first"),
	}
	if known := rapid.IntRange(0, 3).Draw(t, "known"); known < 2 {
		p = *[]*DCQCNParams{HPCCSimDCQCN(), PaperDCQCN()}[known]
	}
	return p
}

// TestDCQCNEqualsTimers runs random CNPs, packets and reads of the rate. Times
// between them are mostly such that timers meet.
func TestDCQCNEqualsTimers(t *testing.T) {
	cuts, increases, checks := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := anyParams(t)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		line := rapid.SampledFrom([]model.Rate{10 * model.Gbps, 25 * model.Gbps, 100 * model.Gbps, 9999999999}).Draw(t, "line")
		s := p.newControl(line)
		w := &referenceDCQCN{p: p, line: float64(line), rate: float64(line), target: float64(line), alpha: 1}
		var now engine.Time
		gap := rapid.OneOf(
			rapid.Int64Range(0, 8_000_000), // ps, up to 8 µs
			rapid.Map(rapid.Int64Range(0, 60), func(us int64) int64 { return us * 1_000_000 }),
			rapid.Map(rapid.Int64Range(0, 60), func(us int64) int64 { return us*1_000_000 + 1000 }),
			rapid.Int64Range(0, 3_000_000_000), // up to 3 ms
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += engine.Time(gap.Draw(t, "gap"))
			what := rapid.IntRange(0, 4).Draw(t, "what")
			before := w.rate
			if next := s.Next(); next > now {
				// Nothing was announced, so nothing may have happened.
				w.until(now)
				if w.rate != before {
					t.Fatalf("the rate changed from %.0f to %.0f by %d; Next() said not before %d", before, w.rate, now, next)
				}
			}
			switch what {
			case 0, 1:
				s.OnCNP(now)
				w.onCNP(now)
				if d := s.Alpha() - w.alpha; math.Abs(d) > p.Gain*0x1p-54 {
					t.Fatalf("at %d: Alpha() = %v; with timers %v", now, s.Alpha(), w.alpha)
				}
			case 2:
				n := model.Bytes(rapid.IntRange(1, 50000).Draw(t, "bytes"))
				s.OnSent(now, n)
				w.onSent(now, n)
			default:
				s.OnTimer(now)
				w.until(now)
			}
			if s.Rate() != model.Rate(w.rate) || s.Target() != model.Rate(w.target) {
				t.Fatalf("at %d: rate %d, target %d; with timers %.0f, %.0f", now, s.Rate(), s.Target(), w.rate, w.target)
			}
			if s.Next() <= now {
				t.Fatalf("at %d: Next() = %d, want later", now, s.Next())
			}
		}
		cuts, increases, checks = cuts+w.cuts, increases+w.increases, checks+w.checks
	})
	t.Logf("%d cuts, %d increases, %d checks", cuts, increases, checks)
	if cuts == 0 || increases == 0 || checks == 0 {
		t.Errorf("%d cuts, %d increases, %d checks: the test has seen too little", cuts, increases, checks)
	}
}
