package serve

import (
	"testing"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
)

// TestReceiveBufferHoldsASlot: buffers grow with the flows of a slot and shrink with the
// number of sockets, within their bounds; a configured one stays.
func TestReceiveBufferHoldsASlot(t *testing.T) {
	for name, tc := range map[string]struct {
		flows, workers int
		configured     model.Bytes
		least, most    model.Bytes
	}{
		"small slots":  {10_000, 1, 0, leastReceiveBuffer, leastReceiveBuffer},
		"large slots":  {100_000, 1, 0, 100 * model.MiB, 200 * model.MiB},
		"two sockets":  {100_000, 2, 0, 50 * model.MiB, 100 * model.MiB},
		"no more":      {1_000_000, 1, 0, mostReceiveBuffer, mostReceiveBuffer},
		"a configured": {100_000, 1, 5 * model.MiB, 5 * model.MiB, 5 * model.MiB},
	} {
		cfg, _ := fatTree(t)
		cfg.Controller.Flows, cfg.DTA().Workers, cfg.DTA().ReceiveBuffer = tc.flows, tc.workers, tc.configured
		f, err := readFabric(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := f.receiveBuffer(cfg)
		if got < tc.least || got > tc.most {
			t.Errorf("%s: buffers of %v; want %v to %v", name, got, tc.least, tc.most)
		}
		chunks, err := control.ChunksPerSlot(tc.flows)
		if err != nil {
			t.Fatal(err)
		}
		if all := 20 * chunks; got > leastReceiveBuffer && got < mostReceiveBuffer && int(got)*tc.workers/datagramSize < all-tc.workers {
			t.Errorf("%s: %d buffers of %v hold %d chunks; want the %d of a slot", name, tc.workers, got, int(got)*tc.workers/datagramSize, all)
		}
		p, err := DryRun(*cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s := p.Flowsets; s.Buffer != got || s.Granted > got || s.Buffered != int(s.Granted)*tc.workers/datagramSize {
			t.Errorf("%s: plan %+v; want buffers of %v, and the chunks of what is granted", name, s, got)
		}
	}
}
