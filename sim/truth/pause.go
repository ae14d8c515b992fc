package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Pause is an interval in which a port could not send a priority.
type Pause struct {
	Port       model.Port // the paused port
	Priority   model.Priority
	By         model.Port // the other end of the link, which asked for it
	ByHost     bool
	Begin, End engine.Time
	Frames     int64 // PAUSE frames received, including the first
	Ended      PauseEnd
}

// PauseEnd is how a pause ended.
type PauseEnd uint8

// Ends.
const (
	Open    PauseEnd = iota // not ended when it was read; End is the time of the read
	Resumed                 // by a RESUME frame
	Expired                 // it expired without a refresh
)

var pauseEndNames = [...]string{"open", "resumed", "expired"}

// String prints the end's name.
func (e PauseEnd) String() string { return pauseEndNames[e] }

// MarshalText writes String's form.
func (e PauseEnd) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// pauses follows the state of all (port, priority) pairs. The intervals are
// kept on request; the state also serves samples and deadlock detection.
type pauses struct {
	keep       bool
	list       []pauseEntry
	max        int
	unrecorded int64

	queues []pauseState // by port × priorities
	ports  []portPause
}

type pauseEntry struct {
	queue      int32
	ended      PauseEnd
	begin, end engine.Time
	frames     int64
}

// pauseState is one (port, priority) pair.
type pauseState struct {
	paused   bool
	received bool // a RESUME frame came after every PAUSE
	since    engine.Time
	frames   int64 // received since the pause started, or since the last one ended
}

// portPause is a port with all its priorities.
type portPause struct {
	mask  uint8 // paused priorities
	since engine.Time
	total engine.Time // time with any of them paused, up to since
}

func newPauses(ports int, keep bool, most int) *pauses {
	return &pauses{keep: keep, max: most, queues: make([]pauseState, ports*priorities), ports: make([]portPause, ports)}
}

// received is called before the change of state that the frame causes, if any.
func (s *pauses) received(port int32, prio model.Priority, stop bool) {
	q := &s.queues[port*priorities+int32(prio)]
	if q.received = !stop; stop {
		q.frames++
	}
}

func (s *pauses) changed(now engine.Time, port int32, prio model.Priority, stop bool) {
	queue := port*priorities + int32(prio)
	q, pt := &s.queues[queue], &s.ports[port]
	q.paused = stop
	if stop {
		q.since = now
		if pt.mask == 0 {
			pt.since = now
		}
		pt.mask |= 1 << prio
		return
	}
	if pt.mask &^= 1 << prio; pt.mask == 0 {
		pt.total += now - pt.since
	}
	s.end(queue, now)
	q.frames = 0
}

// end records a pause that has ended.
func (s *pauses) end(queue int32, now engine.Time) {
	if !s.keep {
		return
	}
	if len(s.list) >= s.max {
		s.unrecorded++
		return
	}
	q := &s.queues[queue]
	how := Expired
	if q.received {
		how = Resumed
	}
	s.list = append(s.list, pauseEntry{queue, how, q.since, now, q.frames})
}

// pausedFor returns how long a port has had a priority paused, since the start
// of the run.
func (s *pauses) pausedFor(port int32, now engine.Time) engine.Time {
	pt := &s.ports[port]
	if pt.mask == 0 {
		return pt.total
	}
	return pt.total + now - pt.since
}

// Pauses returns all pauses by begin, port and priority. Those that have not
// ended are Open and end now.
func (r *Recorder) Pauses() []Pause {
	if r.pauses == nil || !r.pauses.keep {
		return nil
	}
	s := r.pauses
	all := make([]Pause, 0, len(s.list))
	add := func(e pauseEntry) {
		p := r.net.Ports()[e.queue/priorities]
		by := p.Peer()
		all = append(all, Pause{
			Port: model.Port{Node: p.Node, Port: p.ID}, Priority: model.Priority(e.queue % priorities),
			By: model.Port{Node: by.Node, Port: by.ID}, ByHost: by.Host() != nil,
			Begin: e.begin, End: e.end, Frames: e.frames, Ended: e.ended,
		})
	}
	for _, e := range s.list {
		add(e)
	}
	for i := range s.queues {
		if q := &s.queues[i]; q.paused {
			add(pauseEntry{int32(i), Open, q.since, r.net.Now(), q.frames})
		}
	}
	slices.SortFunc(all, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), comparePorts(a.Port, b.Port), cmp.Compare(a.Priority, b.Priority))
	})
	return all
}
