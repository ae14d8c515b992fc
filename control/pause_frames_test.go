package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// TestPausesByMirroredFrames: pauses last until a frame resumes the class, or for their quanta.
func TestPausesByMirroredFrames(t *testing.T) {
	c := evidenceBed(t)
	port := c.portNamed(t, "tor2", "leaf2")
	rate := c.fabric.Port(port).Rate
	base := 10 * model.Time(slotLength)
	pause := func(at time.Duration, class model.Priority, long time.Duration) {
		f := pfc.Pause(model.MAC{}, class, pfc.QuantaOf(long, rate))
		c.now = base.Add(at)
		c.addPauseFrame(base.Add(at), port, &f)
	}
	at := func(slot int64, want time.Duration) {
		t.Helper()
		got := time.Duration(c.meter.pausedIn(port, slot, slot) * float64(slotLength))
		if diff := got - want; diff.Abs() > 10*time.Microsecond {
			t.Errorf("slot %d: paused for %v, want %v", slot, got, want)
		}
	}
	const quanta = 100 * time.Microsecond
	// A pause that is repeated and resumed, across the end of slot 10.
	for d := 8 * time.Millisecond; d < 12*time.Millisecond; d += quanta / 2 {
		pause(d, 3, quanta)
	}
	pause(12*time.Millisecond, 3, 0)
	// One that is not repeated ends by its quanta; another class at the same time adds nothing.
	pause(14*time.Millisecond, 3, quanta)
	pause(14*time.Millisecond+quanta/2, 4, quanta)
	// A frame that was overtaken, and one of a port that is not there, change nothing.
	pause(13*time.Millisecond, 3, quanta)
	c.addPauseFrame(c.now, model.Port{Node: port.Node, Port: 999}, &pfc.Frame{})
	at(10, 2*time.Millisecond)
	at(11, 2*time.Millisecond+quanta/2)
	// One that lasts is known up to the slot's end.
	pause(28*time.Millisecond, 3, quanta)
	c.meter.creditPauseFrames(base.Add(28*time.Millisecond + quanta/2))
	at(11, 2*time.Millisecond+3*quanta/2)
	at(12, quanta/2)
	pause(28*time.Millisecond+3*quanta/4, 3, 0)
	at(12, 3*quanta/4)
	if list := c.meter.pausedPorts(11, 0.1); len(list) != 1 || list[0] != port {
		t.Errorf("ports %v paused in slot 11, want %v", list, port)
	}
}
