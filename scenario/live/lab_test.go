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

func TestProgramme(t *testing.T) {
	cfg := DefaultConfig()
	var d *Director
	l, err := New(cfg, control.Output{Incident: func(in *incident.Incident) { d.Hear(in) }})
	if err != nil {
		t.Fatal(err)
	}
	d = NewDirector(l)
	step := func(n int) {
		for range n {
			if err := l.Advance(); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(40)
	for _, k := range Kinds() {
		began := time.Now()
		f, err := d.Inject(k.Name, place{}, 40*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		step(140)
		t.Logf("%s: %s; found %v after %v; %v", k.Name, f.What, f.Found, f.FoundAt.Sub(f.At), time.Since(began))
	}
	s := d.Score()
	for _, in := range s.Invented {
		t.Logf("invented %d %v at %v %s (%+v)", in.ID, in.Cause, l.fabric.PortName(in.Place), in.Text, in.Fault)
	}
	t.Logf("missed %d", s.Missed)
}
