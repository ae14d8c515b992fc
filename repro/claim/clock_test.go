package claim

import (
	"testing"
	"time"
)

// Sleeping takes no processor time; a round that sleeps is not slower than one
// that does not, and one that works is.
func TestCPUIsWorkAlone(t *testing.T) {
	spin := func(n int) func() {
		return func() {
			x := 1.0
			for i := range n {
				x = x*1.0000001 + float64(i)
			}
			if x == 0 {
				t.Error("unreachable: x grows")
			}
		}
	}
	work := spin(30_000_000)
	took := Best(3, nil, work)
	idle := Best(3, nil, func() { time.Sleep(2 * took) })
	if idle >= took {
		t.Errorf("sleeping took %v, working %v", idle, took)
	}
	if half := Best(3, nil, spin(3_000_000)); half >= took {
		t.Errorf("a tenth of the work took %v, all of it %v", half, took)
	}
}
