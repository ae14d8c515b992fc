package truth

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// frameLog records pause frames and changes and passes all on: the obvious
// reference of the Recorder.
type frameLog struct {
	*Recorder
	frames, changes []frameEvent
}

type frameEvent struct {
	at   engine.Time
	port model.Port
	prio model.Priority
	stop bool
}

func (l *frameLog) PauseReceived(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	l.frames = append(l.frames, frameEvent{now, portOf(at), prio, stop})
	l.Recorder.PauseReceived(now, at, prio, stop)
}

func (l *frameLog) PauseChanged(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	l.changes = append(l.changes, frameEvent{now, portOf(at), prio, stop})
	l.Recorder.PauseChanged(now, at, prio, stop)
}

// pauses reads the intervals out of the log: for each begin its end, and the
// frames received between them.
func (l *frameLog) pauses(end engine.Time, n *sim.Network) (all []Pause) {
	for i, begin := range l.changes {
		if !begin.stop {
			continue
		}
		by := n.Port(begin.port).Peer()
		p := Pause{
			Port: begin.port, Priority: begin.prio, By: portOf(by), ByHost: by.Host() != nil,
			Begin: begin.at, End: end, Ended: Open,
		}
		for _, c := range l.changes[i+1:] {
			if c.port == begin.port && c.prio == begin.prio {
				p.End, p.Ended = c.at, Expired
				break
			}
		}
		for _, f := range l.frames {
			if f.port != begin.port || f.prio != begin.prio || f.at < p.Begin || f.at > p.End {
				continue
			}
			if f.stop {
				p.Frames++
			} else if f.at == p.End {
				p.Ended = Resumed
			}
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), comparePorts(a.Port, b.Port), cmp.Compare(a.Priority, b.Priority))
	})
	return all
}

func TestPausesMatchTheFrames(t *testing.T) {
	b := fatTree(t, unthrottled(), All())
	log := &frameLog{Recorder: b.r}
	b.Observe(log)
	b.add(incast(300_000)...)
	b.inject(sim.Injection{At: 50_000, Fault: sim.Storm{Host: 3, Priority: 3, On: 40 * time.Microsecond, Off: 25 * time.Microsecond}})
	b.inject(sim.Injection{At: 20_000, Fault: sim.Storm{Host: 4, Priority: 5}})
	// A storm whose host falls silent: the pauses of that link expire.
	port := model.Port{Node: 6, Port: 1}
	b.inject(sim.Injection{At: 20_000, Fault: sim.Storm{Host: 6, Priority: 2}})
	b.inject(sim.Injection{At: 100_000, Fault: sim.LinkDown{Port: port}})
	b.run(900 * time.Microsecond)
	got, want := b.r.Pauses(), log.pauses(b.Now(), b.Network)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("pauses differ from the log (-log +truth):\n%s", diff)
	}
	var ends [3]int
	for _, p := range got {
		ends[p.Ended]++
	}
	if ends[Open] == 0 || ends[Resumed] < 10 || ends[Expired] == 0 {
		t.Errorf("ends open %d, resumed %d, expired %d; want some, many, some", ends[Open], ends[Resumed], ends[Expired])
	}
	// And the ports' own clocks and counters agree.
	for _, p := range b.Ports() {
		var time [priorities]engine.Time
		var frames int64
		for _, x := range got {
			if x.Port == portOf(p) {
				frames += x.Frames
				if x.Ended != Open {
					time[x.Priority] += x.End - x.Begin
				}
			}
		}
		if time != p.PausedFor || frames != p.PausesReceived {
			t.Errorf("port %v: paused for %v with %d frames; the port says %v, %d", portOf(p), time, frames, p.PausedFor, p.PausesReceived)
		}
	}
}

func TestPauseListIsBounded(t *testing.T) {
	run := func(most int) *bed {
		o := Options{Pauses: true, MaxPauses: most, Conserve: true}
		b := fatTree(t, unthrottled(), o)
		b.add(incast(300_000)...)
		b.run(20 * time.Millisecond)
		return b
	}
	whole, short := run(1<<20), run(10)
	all, kept := whole.r.Pauses(), short.r.Pauses()
	if len(kept) != 10 || short.r.Unrecorded().Pauses != int64(len(all)-10) || whole.r.Unrecorded() != (Unrecorded{}) {
		t.Errorf("kept %d, lost %d of %d; want 10 and the rest", len(kept), short.r.Unrecorded().Pauses, len(all))
	}
}
