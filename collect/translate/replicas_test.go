package translate

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// mirror is a Replica that records keys.
type mirror struct {
	heap
	down bool
}

func (m *mirror) Down() bool       { return m.down }
func (*mirror) Tick(model.Time)    {}
func (m *mirror) Drain(model.Time) {}

// Every report that is not refused is at every replica that is up, and none is
// accepted while one that is up refuses it or none is up.
func TestReplicasStoreTheSame(t *testing.T) {
	a, b := &mirror{}, &mirror{}
	router := NewRouter(Limiter{}, Replicas{a, b})
	put := func(key string) dta.Verdict {
		v := router.Put(0, &dta.Report{Primitive: dta.KeyWrite, Redundancy: 1, Key: []byte(key), Data: []byte{1, 2, 3, 4}})
		router.Flush(0)
		return v
	}
	run := func(key string) bool {
		r := dta.Report{Primitive: dta.KeyWrite, Redundancy: 1, Key: []byte(key), Data: []byte{1, 2, 3, 4}}
		return router.PutRun(0, &r, r.AppendTo(nil), 1)
	}
	for _, step := range []struct {
		key    string
		change func()
		want   dta.Verdict
	}{
		{"both", func() {}, dta.Stored},
		{"one is overloaded", func() { b.verdict = dta.RateLimited }, dta.RateLimited},
		{"it is down", func() { b.down = true }, dta.Stored},
		{"the other is overloaded", func() { a.verdict = dta.RateLimited }, dta.RateLimited},
		{"all are down", func() { a.down = true }, dta.RateLimited},
		{"one returns", func() { b.down, b.verdict = false, dta.Stored }, dta.Stored},
		{"both again", func() { a.down, a.verdict = false, dta.Stored }, dta.Stored},
	} {
		step.change()
		if got := put(step.key); got != step.want {
			t.Errorf("%s: verdict %v; want %v", step.key, got, step.want)
		}
		if got := run(step.key + ", a run"); got != (step.want == dta.Stored) {
			t.Errorf("%s: a run is taken: %v; want %v", step.key, got, step.want == dta.Stored)
		}
	}
	wantA := []string{"both", "both, a run", "it is down", "it is down, a run", "both again", "both again, a run"}
	wantB := []string{"both", "both, a run", "one returns", "one returns, a run", "both again", "both again, a run"}
	if !slices.Equal(a.keys, wantA) || !slices.Equal(b.keys, wantB) {
		t.Errorf("replicas have %q and %q; want %q and %q", a.keys, b.keys, wantA, wantB)
	}
}
