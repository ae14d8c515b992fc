package mmu

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// user uses a Buffer as a switch does: by the slow path, or by the fast path
// where it applies.
type user struct {
	*Buffer
	fast bool
}

// arrive reports whether the packet was admitted and whether its sender is
// paused after.
func (u user) arrive(port model.PortID, prio model.Priority, queued, size model.Bytes) (in, paused bool) {
	if u.fast && u.AdmitFast(port, prio, size) {
		return true, u.Paused(port, prio)
	}
	in = !u.TailDrop(prio, queued, size) && u.Admit(port, prio, size)
	if in && u.ShouldPause(port, prio) {
		u.SetPaused(port, prio, true)
	}
	return in, u.Paused(port, prio)
}

func (u user) leave(port model.PortID, prio model.Priority, size model.Bytes) (paused bool) {
	if u.fast && u.ReleaseFast(port, prio, size) {
		return u.Paused(port, prio)
	}
	u.Release(port, prio, size)
	if u.ShouldResume(port, prio) {
		u.SetPaused(port, prio, false)
	}
	return u.Paused(port, prio)
}

// state is all that a user can see.
func (u user) state() (s []model.Bytes) {
	for port := range u.ports {
		for prio := range Priorities {
			r, sh, h := u.Usage(model.PortID(port), model.Priority(prio))
			s = append(s, r, sh, h)
		}
	}
	return append(s, u.Shared())
}

// TestFastPathEqualsSlowPath applies random arrivals and departures to two
// buffers.
func TestFastPathEqualsSlowPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Buffer += 2000 // enough for most of what anyConfig draws
		c.EgressLimit = model.Bytes(rapid.IntRange(0, 100).Draw(t, "egress limit"))
		b, err := New(c)
		if err != nil {
			return
		}
		reference, _ := New(c)
		fast, slow := user{b, true}, user{reference, false}
		type packet struct {
			port model.PortID
			prio model.Priority
			size model.Bytes
		}
		var inside []packet
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(inside) > 0 && rapid.Bool().Draw(t, "leave") {
				p := inside[0]
				inside = inside[1:]
				if got, want := fast.leave(p.port, p.prio, p.size), slow.leave(p.port, p.prio, p.size); got != want {
					t.Fatalf("after %v left its sender is paused: %v; want %v", p, got, want)
				}
			} else {
				p := packet{
					model.PortID(rapid.IntRange(0, len(c.Ports)).Draw(t, "port")),
					model.Priority(rapid.IntRange(0, 1).Draw(t, "prio")),
					model.Bytes(rapid.IntRange(1, 60).Draw(t, "size")),
				}
				// A link that is cut forgets pauses, whatever the buffer holds.
				if stop := rapid.IntRange(0, 9).Draw(t, "pause"); stop < 2 {
					fast.SetPaused(p.port, p.prio, stop == 1)
					slow.SetPaused(p.port, p.prio, stop == 1)
				}
				queued := model.Bytes(rapid.IntRange(0, 100).Draw(t, "queued"))
				passes, before := b.FitsUnqueued(p.port, p.prio, p.size), fast.state()
				in, paused := fast.arrive(p.port, p.prio, queued, p.size)
				if wantIn, want := slow.arrive(p.port, p.prio, queued, p.size); in != wantIn || paused != want {
					t.Fatalf("%v: let in %v, paused %v; want %v, %v", p, in, paused, wantIn, want)
				}
				switch {
				case passes:
					fast.leave(p.port, p.prio, p.size)
					slow.leave(p.port, p.prio, p.size)
					if !in || paused || b.Paused(p.port, p.prio) || !slices.Equal(fast.state(), before) {
						t.Fatalf("%v passes: let in %v, paused %v, then holds %v; want %v", p, in, paused, fast.state(), before)
					}
				case in && c.Accounted>>p.prio&1 == 1:
					inside = append(inside, p)
				}
			}
			if got, want := fast.state(), slow.state(); !slices.Equal(got, want) {
				t.Fatalf("the fast path holds %v; want %v", got, want)
			}
		}
	})
}
