package live

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
)

func TestQuietFabricHasNoIncidents(t *testing.T) {
	cfg := DefaultConfig()
	l, err := New(cfg, control.Output{Incident: func(in *incident.Incident) {
		t.Errorf("incident %v at %v: %s", in.Cause, in.Place, in.Text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 100 {
		if err := l.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v of fabric in %v, %d hops, %d flows; stats %+v", l.Now(), time.Since(began), l.net.Counts.Hops, l.net.Flows(), l.Control.Stats())
}
