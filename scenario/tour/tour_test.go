package tour

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

func TestTourFindsTheFault(t *testing.T) {
	for seed := range uint64(8) {
		cfg := DefaultConfig()
		cfg.Seed = seed
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Right() {
			t.Errorf("seed %d: found %v; want %v alone", seed, r.Found, r.Injected)
		}
		if r.Sent != cfg.Flows || r.Delivered == 0 || r.Delivered == r.Sent || r.Identical != r.Delivered {
			t.Errorf("seed %d: sent %d, delivered %d, identical %d; want %d sent, some lost, all others identical", seed, r.Sent, r.Delivered, r.Identical, cfg.Flows)
		}
		if r.Transport.Lost != 0 || r.Transport.Malformed != 0 {
			t.Errorf("seed %d: %+v; want nothing lost or malformed on loopback", seed, r.Transport)
		}
		if len(r.Sample.Hops) != 5 {
			t.Errorf("seed %d: the longest journey has %d hops; want 5 in a fat-tree", seed, len(r.Sample.Hops))
		}
	}
}

func TestTourReplays(t *testing.T) {
	a, err := Run(t.Context(), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the same seed gave\n%+v\nand\n%+v", a, b)
	}
}

// TestCollectorCountsLoss feeds datagrams by hand: a gap in the numbers is as
// many reports lost, and nonsense is counted, not believed.
func TestCollectorCountsLoss(t *testing.T) {
	c := &collector{next: map[model.NodeID]dta.Seq{}}
	var reader dta.Reader
	w := dta.NewWriter(7, 0)
	for i := range 3 {
		w.Begin(make([]byte, mtu))
		for range 4 {
			if err := w.Add(&dta.Report{Primitive: dta.KeyIncrement, Redundancy: 1, Key: []byte{1}, Delta: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if datagram := w.Finish(); i != 1 {
			c.take(&reader, datagram)
		}
	}
	c.take(&reader, []byte{1, 2, 3})
	want := Traffic{Datagrams: 3, Bytes: c.traffic.Bytes, Reports: 8, Lost: 4, Malformed: 1}
	if c.traffic != want {
		t.Errorf("after a lost datagram of 4 reports and one of nonsense: %+v; want %+v", c.traffic, want)
	}
}

func TestTourEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, DefaultConfig()); err == nil {
		t.Error("Run on a cancelled context = nil; want an error")
	}
}

func TestTourWritesACapture(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Pcap = filepath.Join(t.TempDir(), "tour.pcapng")
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.Frames < r.Sent {
		t.Errorf("%d frames captured of %d packets; want at least one each", r.Frames, r.Sent)
	}
	cfg.Pcap = filepath.Join(t.TempDir(), "no", "such", "folder")
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("Run with a capture that cannot be written = nil; want an error")
	}
}
