package live

import (
	"os"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
)

func TestDbg(t *testing.T) {
	cfg := DefaultConfig()
	var d *Director
	var l *Lab
	l, err := New(cfg, control.Output{Incident: func(in *incident.Incident) {
		d.Hear(in)
		t.Logf("   %v #%d %v %v %v sure %v: %s", l.Now(), in.ID, in.Cause, in.Place, in.Agree(), in.Sure, in.Text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	d = NewDirector(l)
	last := l.net.Counts
	step := func(n int) {
		for range n / 10 {
			for range 10 {
				if err := l.Advance(); err != nil {
					t.Fatal(err)
				}
			}
			c := l.net.Counts
			t.Logf("%v hops %d drops %v pauses %d finished %d reports %v", l.Now(), c.Hops-last.Hops, c.Drops, c.Pauses-last.Pauses, l.net.Finished, l.Control.Stats().Reports)
			last = c
		}
	}
	step(40)
	f, err := d.Inject(os.Getenv("KIND"), Anywhere, 40*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(f.What)
	step(140)
}
