package truth

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Pause is a time in which a port could not send a priority.
type Pause struct {
	Port       model.Port // that was stopped
	Priority   model.Priority
	By         model.Port // that asked for it: the other end of the link
	ByHost     bool
	Begin, End engine.Time
	Frames     int64 // PAUSE frames heard, the one that began it included
	Ended      PauseEnd
}

// PauseEnd says how a pause ended.
type PauseEnd uint8

// Ends.
const (
	Open    PauseEnd = iota // it had not when it was read; End is then
	Resumed                 // by a frame
	Expired                 // its time was over and it was not repeated
)

var pauseEndNames = [...]string{"open", "resumed", "expired"}

// String prints the end's name.
func (e PauseEnd) String() string { return pauseEndNames[e] }

// MarshalText writes String's form.
func (e PauseEnd) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// pauses follows the state of all (port, priority) pairs. The intervals are
// kept if somebody asked for them; the state also serves samples and the
// deadlock watch.
type pauses struct {
	keep bool
	list []pauseEntry
	max  int
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
	paused bool
	received  bool // a RESUME frame came, newer than every PAUSE
	since  engine.Time
	frames int64 // heard since the pause began, or since the last one ended
}

// portPause is a port with all its priorities.
type portPause struct {
	mask  uint8 // priorities paused
	since engine.Time
	total engine.Time // with any of them paused, up to since
}

func newPauses(ports int, keep bool, most int) *pauses {
	return &pauses{keep: keep, max: most, queues: make([]pauseState, ports*priorities), ports: make([]portPause, ports)}
}

// received comes before the change that the frame makes, if it makes one.
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

// end keeps a pause that is over.
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

// pausedFor is how long a port has had a priority paused, since the run began.
func (s *pauses) pausedFor(port int32, now engine.Time) engine.Time {
	pt := &s.ports[port]
	if pt.mask == 0 {
		return pt.total
	}
	return pt.total + now - pt.since
}

// Pauses returns all pauses by begin, port and priority. Those that last are
// Open and end now.
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
