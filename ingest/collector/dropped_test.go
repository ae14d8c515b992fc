package collector

import "testing"

// TestDroppedAllocatesNothing: a service asks every few milliseconds.
func TestDroppedAllocatesNothing(t *testing.T) {
	c, _ := start(t, small(""))
	if n := testing.AllocsPerRun(100, func() { c.Dropped() }); n != 0 || c.Dropped() != 0 {
		t.Errorf("%d datagrams dropped, with %v allocations; want none", c.Dropped(), n)
	}
}
