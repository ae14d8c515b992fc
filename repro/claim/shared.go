package claim

import "sync"

// Shared is a measurement that several claims evaluate: it is made once for the
// same options, and the last one is kept. The zero value is ready for use.
type Shared[T any] struct {
	mu    sync.Mutex
	known bool
	of    Options
	value T
}

// Get returns the measurement for some options.
func (s *Shared[T]) Get(o Options, measure func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && s.of.Seed == o.Seed && s.of.Quick == o.Quick && s.of.removed == o.removed {
		return s.value, nil
	}
	value, err := measure()
	s.known, s.of, s.value = err == nil, Options{Seed: o.Seed, Quick: o.Quick, removed: o.removed}, value
	return value, err
}
