package live

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
)

func TestProgramme(t *testing.T) {
	cfg := DefaultConfig()
	if n, err := strconv.Atoi(os.Getenv("SEED")); err == nil {
		cfg.Seed = uint64(n)
	}
	if r, err := model.ParseRate(os.Getenv("RATE")); err == nil {
		cfg.Rate = r
	}
	var d *Director
	l, err := New(cfg, control.Output{Incident: func(in *incident.Incident) { d.Hear(in) }})
	if err != nil {
		t.Fatal(err)
	}
	d = NewDirector(l)
	s, err := d.Programme(context.Background(), func(f *Injected) {
		t.Logf("%s: %s; found %v after %v", f.Kind, f.What, f.Found, f.FoundAt.Sub(f.At))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range s.Invented {
		t.Errorf("invented %d %v at %v %s (%+v)", in.ID, in.Cause, l.fabric.PortName(in.Place), in.Text, in.Fault)
	}
	if s.Missed > 0 {
		t.Errorf("missed %d", s.Missed)
	}
}
