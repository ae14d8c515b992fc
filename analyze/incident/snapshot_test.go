package incident

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// FuzzRestore: a snapshot that arrives is refused, or restores a correlator that works.
func FuzzRestore(f *testing.F) {
	c, err := New(DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	e := Evidence{From: 1, At: 2, Cause: anomaly.Blackhole, Location: model.Port{Node: 3, Port: 1}, Text: "all are dropped"}
	c.AddEvidence(e)
	f.Add(c.Snapshot())
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		if c.Restore(data) != nil {
			return
		}
		c.AddEvidence(e)
		c.CloseQuiet(e.At)
		c.TakeChanged()
		if err := c.Restore(c.Snapshot()); err != nil {
			t.Fatalf("its own snapshot: %v", err)
		}
	})
}
