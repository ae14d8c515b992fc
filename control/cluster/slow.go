package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/member"
)

// ShedConfig says when a member that analyses is shed: the others take its parts. A leader waits
// for the results of all parts, so that one that is slower than the others delays everything.
type ShedConfig struct {
	Leases stream.Leases // nil: none is shed
	After  time.Duration // how long the leader must wait for the same part
	For    time.Duration // then it has its share again
}

// shedAhead is by how many slots the other parts must be ahead: where all are late, there is too
// much work, and shedding one would leave more for each of the others.
const shedAhead = 16

// slowWatch watches whose results a leader waits for.
type slowWatch struct {
	cfg   ShedConfig
	parts []uint32 // that were missing each time since then
	since time.Time
	shed  stream.Lease // nil: none
	until time.Time
}

// observe takes what the leader waits for at present: parts that are behind all others; none:
// it does not wait. It returns those that it has waited for too long.
func (s *slowWatch) observe(now time.Time, missing []uint32) []uint32 {
	both := slices.DeleteFunc(slices.Clone(s.parts), func(p uint32) bool { return !slices.Contains(missing, p) })
	if len(both) == 0 {
		s.parts, s.since = slices.Clone(missing), now
		return nil
	}
	s.parts = both
	if now.Sub(s.since) < s.cfg.After {
		return nil
	}
	s.parts = nil
	return both
}

// watchSlow sheds a member that is too slow, and ends that after a time.
func (w *leaderWork) watchSlow() {
	s := &w.slow
	if s.cfg.Leases == nil {
		return
	}
	now := time.Now()
	if s.shed != nil {
		if now.Before(s.until) {
			return
		}
		w.endShedding()
	}
	late := s.observe(now, w.behind())
	if len(late) == 0 {
		return
	}
	g, err := member.Look(w.ctx, s.cfg.Leases, FlowGroup)
	slow := g.Holders[int(late[0])]
	if err != nil || slow == "" || len(g.Members) < 2 {
		return
	}
	if s.shed, err = member.Shed(w.ctx, s.cfg.Leases, FlowGroup, slow); err != nil {
		s.shed = nil // another leader may have shed it just now
		return
	}
	s.until = now.Add(s.cfg.For)
	w.shed.Add(1)
	w.Log.Warn("member is slower than the others: they take its parts", "member", slow, "parts", late, "for", s.cfg.For)
}

func (w *leaderWork) endShedding() {
	if w.slow.shed != nil {
		_ = w.slow.shed.Release(context.WithoutCancel(w.ctx)) // it expires
		w.slow.shed = nil
	}
}

// behind returns the parts that the oldest batch waits for, if all others are ahead of them.
func (w *leaderWork) behind() (missing []uint32) {
	if len(w.queue) == 0 {
		return nil
	}
	run := w.queue[0].Run
	var slot, newest uint64
	for i := range w.queue {
		for k := range w.queue[i].events {
			if e := &w.queue[i].events[k]; e.kind == slotEvent && w.queue[i].Run == run {
				if slot == 0 && !w.complete(run, e) {
					slot = e.slot
				}
				newest = e.slot
			}
		}
		if slot > 0 && newest >= slot+shedAhead {
			break
		}
	}
	if slot == 0 {
		return nil
	}
	for p := range uint32(w.Streams.Partitions) {
		if _, ok := w.results[resultKey{run, slot, p}]; !ok {
			missing = append(missing, p)
		} else if _, ok := w.results[resultKey{run, min(newest, slot+shedAhead), p}]; !ok {
			return nil
		}
	}
	return missing
}
