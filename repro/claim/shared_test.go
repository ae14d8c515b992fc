package claim

import (
	"errors"
	"testing"
)

// A measurement is made once for the same seed, size and mutation; one that failed
// is made again.
func TestSharedIsMeasuredOnce(t *testing.T) {
	var s Shared[int]
	made := 0
	get := func(o Options, err error) {
		t.Helper()
		want := made + 1
		v, got := s.Get(o, func() (int, error) { made++; return made, err })
		if !errors.Is(got, err) || made != want && v != made {
			t.Errorf("%+v: %d, %v after %d measurements", o, v, got, made)
		}
	}
	broken := errors.New("broken")
	for i, step := range []struct {
		o    Options
		err  error
		made int
	}{
		{Options{Seed: 1}, nil, 1},
		{Options{Seed: 1, Progress: func(float64, string) {}}, nil, 1},
		{Options{Seed: 2}, nil, 2},
		{Options{Seed: 2, Quick: true}, nil, 3},
		{Options{Seed: 2, Quick: true, removed: "a"}, nil, 4},
		{Options{Seed: 2, Quick: true, removed: "a"}, nil, 4},
		{Options{Seed: 3}, broken, 5},
		{Options{Seed: 3}, nil, 6},
	} {
		get(step.o, step.err)
		if made != step.made {
			t.Errorf("step %d: %d measurements; want %d", i, made, step.made)
		}
	}
}
