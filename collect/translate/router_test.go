package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// heap is a Target that records keys.
type heap struct {
	keys    []string
	verdict dta.Verdict
}

func (h *heap) Admit(*dta.Report) dta.Verdict { return h.verdict }

func (h *heap) AdmitRun(*dta.Report, []byte, int) dta.Verdict { return h.verdict }

func (h *heap) Put(_ model.Time, batch []dta.Report) {
	for _, r := range batch {
		if r.Primitive == dta.Append {
			h.keys = append(h.keys, fmt.Sprint("list ", r.List))
		} else {
			h.keys = append(h.keys, string(r.Key))
		}
	}
}

func (h *heap) PutRun(now model.Time, first *dta.Report, run []byte, _ int) {
	for r := *first; len(run) > 0; {
		n, err := r.Parse(run)
		if err != nil {
			panic(err)
		}
		h.Put(now, []dta.Report{r})
		run = run[n:]
	}
}

// TestRunsKeepTheOrder: a run overtakes nothing that came before it.
func TestRunsKeepTheOrder(t *testing.T) {
	h := &heap{}
	r := NewRouter(Limiter{}, h)
	report := func(key string) dta.Report {
		return dta.Report{Primitive: dta.KeyWrite, Redundancy: 1, Key: []byte(key), Data: []byte{1}}
	}
	a, b, c := report("a"), report("b"), report("c")
	r.Put(0, &a)
	if !r.PutRun(0, &b, c.AppendTo(b.AppendTo(nil)), 2) {
		t.Fatal("a run of Key-Writes is not taken")
	}
	r.Flush(0)
	if got := strings.Join(h.keys, ""); got != "abc" {
		t.Errorf("order %q; want abc", got)
	}
	limited, _ := NewLimiter(10, 10)
	now := report("d")
	now.Immediate = true
	for name, refused := range map[string]bool{
		"two targets": NewRouter(Limiter{}, h, h).PutRun(0, &b, nil, 0),
		"rate":        NewRouter(limited, h).PutRun(0, &b, nil, 0),
		"immediate":   r.PutRun(0, &now, nil, 0),
		"no memory":   NewRouter(Limiter{}, &heap{verdict: dta.Unserved}).PutRun(0, &b, nil, 0),
	} {
		if refused {
			t.Errorf("%s: a run is taken whole", name)
		}
	}
}

func TestRouterKeepsAKeyTogether(t *testing.T) {
	targets := []*heap{{}, {}, {}}
	r := NewRouter(Limiter{}, targets[0], targets[1], targets[2])
	const n = 3000
	for round := range 2 {
		for i := range n {
			rep := dta.Report{Primitive: dta.KeyWrite, Key: fmt.Appendf(nil, "flow %d", i)}
			if i%3 == 0 {
				rep = dta.Report{Primitive: dta.Append, List: dta.ListID(i / 3)}
			}
			if v := r.Put(model.Time(round), &rep); v != dta.Stored {
				t.Fatalf("Put = %v; want stored", v)
			}
		}
	}
	r.Flush(0)
	where := map[string]int{}
	total := 0
	for i, target := range targets {
		for _, k := range target.keys {
			if at, ok := where[k]; ok && at != i {
				t.Fatalf("%s is at targets %d and %d", k, at, i)
			}
			where[k] = i
		}
		if len(target.keys) < 2*n/3*8/10 {
			t.Errorf("target %d has %d of %d reports; want about a third", i, len(target.keys), 2*n)
		}
		total += len(target.keys)
	}
	if total != 2*n {
		t.Errorf("%d reports arrived; want %d", total, 2*n)
	}
	for _, want := range []dta.Verdict{dta.Unserved, dta.RateLimited} {
		targets[0].verdict, targets[1].verdict, targets[2].verdict = want, want, want
		if v := r.Put(0, &dta.Report{Primitive: dta.KeyWrite, Key: []byte("k")}); v != want {
			t.Errorf("Put = %v; want %v", v, want)
		}
	}
}

func TestRouterKeepsTheRate(t *testing.T) {
	limit, err := NewLimiter(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRouter(limit, &heap{})
	rep := dta.Report{Primitive: dta.KeyWrite, Key: []byte("k")}
	for i, want := range []dta.Verdict{dta.Stored, dta.Stored, dta.RateLimited} {
		if v := r.Put(0, &rep); v != want {
			t.Errorf("Put of report %d at once = %v; want %v", i, v, want)
		}
	}
	if v := r.Put(model.Time(time.Millisecond), &rep); v != dta.Stored {
		t.Errorf("Put a millisecond later = %v; want stored", v)
	}
}

// TestLimiter checks both bounds: no time range lets more through than its share
// and a burst, and constant load gets that share.
func TestLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(1000, 1e8).Draw(t, "rate")
		burst := rapid.IntRange(2, 50).Draw(t, "burst") // asked 4 times per report, a burst of 1 wastes some
		l, err := NewLimiter(rate, burst)
		if err != nil {
			t.Fatal(err)
		}
		var now model.Time
		allowed := 0
		end := model.Time(float64(time.Second) * 500 / rate)
		for now < end {
			if l.Allow(now) {
				allowed++
			} else {
				now += model.Time(float64(time.Second)/rate/4) + 1
			}
		}
		share := rate * now.Sub(0).Seconds()
		if most := share*1.01 + float64(burst) + 1; float64(allowed) > most {
			t.Fatalf("%d reports in %v at %g/s; want at most %g", allowed, now, rate, most)
		}
		if least := share*0.9 - 1; float64(allowed) < least {
			t.Fatalf("%d reports in %v at %g/s; want at least %g", allowed, now, rate, least)
		}
	})
	if _, err := NewLimiter(-1, 1); err == nil {
		t.Error("NewLimiter(-1) = nil; want an error")
	}
	var free Limiter
	for range 1000 {
		if !free.Allow(0) {
			t.Fatal("the zero Limiter refuses")
		}
	}
}
