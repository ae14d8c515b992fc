package mmu

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// reference is a Buffer as slow and obvious as can be: it has a letter for each
// byte that it holds, r for reserve, s for shared, h for headroom, and counts
// letters. It follows the rules as words say them.
type reference struct {
	c    Config
	held map[[2]int]string // by port and priority
}

func (w *reference) count(port, prio int, kind string) int {
	return strings.Count(w.held[[2]int{port, prio}], kind)
}

func (w *reference) allShared() (n int) {
	for _, s := range w.held {
		n += strings.Count(s, "s")
	}
	return n
}

func (w *reference) total() (n int) {
	for _, s := range w.held {
		n += len(s)
	}
	return n
}

// sharedBytes is the shared buffer, counted queue by queue.
func (w *reference) sharedBytes() int {
	left := int(w.c.Buffer)
	for _, p := range w.c.Ports {
		if w.c.HPCC {
			left -= int(w.c.Reserve + p.Headroom)
			continue
		}
		for prio := range Priorities {
			if w.c.Accounted>>prio&1 == 1 {
				left -= int(w.c.Reserve)
			}
			if w.c.Lossless>>prio&1 == 1 {
				left -= int(p.Headroom)
			}
		}
	}
	return left
}

func (w *reference) lossless(port, prio int) bool { return port > 0 && w.c.Lossless>>prio&1 == 1 }

func (w *reference) xoff(port int) int {
	free := w.sharedBytes() - w.allShared()
	if port == 0 {
		return free / 8
	}
	p := w.c.Ports[port-1]
	if p.Xoff > 0 {
		return int(p.Xoff)
	}
	return free * int(p.Alpha.Num) / int(p.Alpha.Den)
}

func (w *reference) admit(port, prio, size int) bool {
	if w.c.Accounted>>prio&1 == 0 {
		return true
	}
	reserve, headroom := 0, 0
	if port > 0 {
		reserve = int(w.c.Reserve)
	}
	if w.lossless(port, prio) {
		headroom = int(w.c.Ports[port-1].Headroom)
	}
	r, s, h := w.count(port, prio, "r"), w.count(port, prio, "s"), w.count(port, prio, "h")
	noHeadroom := h+size > headroom
	if w.c.HPCC && noHeadroom && s+size > w.xoff(port) {
		return false
	}
	toReserve := min(size, reserve-r)
	toShared := size - toReserve
	fits := toShared == 0 || s+toShared <= w.xoff(port) && w.allShared()+toShared <= w.sharedBytes()
	key := [2]int{port, prio}
	switch {
	case fits:
		w.held[key] += strings.Repeat("r", toReserve) + strings.Repeat("s", toShared)
	case !noHeadroom:
		w.held[key] += strings.Repeat("h", size)
	default:
		return false
	}
	return true
}

func (w *reference) release(port, prio, size int) {
	key := [2]int{port, prio}
	for range size {
		for _, kind := range []string{"h", "s", "r"} {
			if strings.Contains(w.held[key], kind) {
				w.held[key] = strings.Replace(w.held[key], kind, "", 1)
				break
			}
		}
	}
}

func (w *reference) shouldPause(port, prio int) bool {
	s, h := w.count(port, prio, "s"), w.count(port, prio, "h")
	return w.lossless(port, prio) && (h > 0 || s >= w.xoff(port) && (s > 0 || w.c.HPCC))
}

func (w *reference) shouldResume(port, prio int) bool {
	s, h := w.count(port, prio, "s"), w.count(port, prio, "h")
	if static := port > 0 && w.c.Ports[port-1].Xoff > 0; static {
		return h == 0 && s <= int(w.c.Ports[port-1].Xon)
	}
	return h == 0 && (s == 0 || s+int(w.c.ResumeOffset) <= w.xoff(port))
}

// anyConfig draws a small buffer, so that every limit is met often.
func anyConfig(t *rapid.T) Config {
	c := Config{
		Buffer:       model.Bytes(rapid.IntRange(1, 3000).Draw(t, "buffer")),
		Reserve:      model.Bytes(rapid.IntRange(0, 40).Draw(t, "reserve")),
		ResumeOffset: model.Bytes(rapid.IntRange(0, 60).Draw(t, "offset")),
		Accounted:    rapid.Uint8().Draw(t, "accounted"),
		HPCC:         rapid.Bool().Draw(t, "hpcc"),
	}
	c.Lossless = c.Accounted & rapid.Uint8().Draw(t, "lossless")
	for range rapid.IntRange(1, 4).Draw(t, "ports") {
		p := Port{Headroom: model.Bytes(rapid.IntRange(0, 120).Draw(t, "headroom"))}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			p.Xoff = model.Bytes(rapid.IntRange(1, 400).Draw(t, "xoff"))
			p.Xon = model.Bytes(rapid.IntRange(0, int(p.Xoff)-1).Draw(t, "xon"))
		case 1:
			p.Alpha = Alpha{rapid.Uint32Range(1, 9).Draw(t, "num"), rapid.Uint32Range(1, 9).Draw(t, "den")}
		default:
			p.Alpha = AlphaShift(rapid.Uint8Range(0, 4).Draw(t, "shift"))
		}
		if c.HPCC { // which has shifts only
			p.Xoff, p.Xon, p.Alpha = 0, 0, AlphaShift(rapid.Uint8Range(0, 3).Draw(t, "shift"))
		}
		c.Ports = append(c.Ports, p)
	}
	return c
}

// TestBufferEqualsReference applies random arrivals and departures to both, and
// checks what must hold of any buffer after each.
func TestBufferEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		b, err := New(c)
		w := &reference{c: c, held: map[[2]int]string{}}
		if (err == nil) != (w.sharedBytes() > 0) {
			t.Fatalf("New(%+v) = %v; the reference has %d shared", c, err, w.sharedBytes())
		}
		if err != nil {
			return
		}
		type packet struct{ port, prio, size int }
		var inside []packet
		check := func(port, prio int) {
			if got, want := b.ShouldPause(model.PortID(port), model.Priority(prio)), w.shouldPause(port, prio) && !b.Paused(model.PortID(port), model.Priority(prio)); got != want {
				t.Fatalf("ShouldPause(%d, %d) = %v; want %v, with %v", port, prio, got, want, w.held)
			} else if got {
				b.SetPaused(model.PortID(port), model.Priority(prio), true)
			}
			if got, want := b.ShouldResume(model.PortID(port), model.Priority(prio)), w.shouldResume(port, prio) && b.Paused(model.PortID(port), model.Priority(prio)); got != want {
				t.Fatalf("ShouldResume(%d, %d) = %v; want %v, with %v", port, prio, got, want, w.held)
			} else if got {
				b.SetPaused(model.PortID(port), model.Priority(prio), false)
			}
			sum := model.Bytes(0)
			for port := range len(c.Ports) + 1 {
				if got := b.Threshold(model.PortID(port)); int(got) != w.xoff(port) || got < 0 {
					t.Fatalf("Threshold(%d) = %d; want %d", port, got, w.xoff(port))
				}
				for prio := range Priorities {
					r, s, h := b.Usage(model.PortID(port), model.Priority(prio))
					if int(r) != w.count(port, prio, "r") || int(s) != w.count(port, prio, "s") || int(h) != w.count(port, prio, "h") {
						t.Fatalf("Usage(%d, %d) = %d, %d, %d; the reference holds %q", port, prio, r, s, h, w.held[[2]int{port, prio}])
					}
					sum += s
				}
			}
			if b.Shared() != sum || sum > c.SharedBytes() {
				t.Fatalf("Shared() = %v of %v; the queues sum to %v", b.Shared(), c.SharedBytes(), sum)
			}
			if !c.HPCC && w.total() > int(c.Buffer) {
				t.Fatalf("the buffer of %v holds %d bytes", c.Buffer, w.total())
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if len(inside) > 0 && rapid.IntRange(0, 2).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "which")
				p := inside[i]
				inside = append(inside[:i], inside[i+1:]...)
				b.Release(model.PortID(p.port), model.Priority(p.prio), model.Bytes(p.size))
				w.release(p.port, p.prio, p.size)
				check(p.port, p.prio)
				continue
			}
			p := packet{rapid.IntRange(0, len(c.Ports)).Draw(t, "port"), rapid.IntRange(0, Priorities-1).Draw(t, "prio"), rapid.IntRange(1, 150).Draw(t, "size")}
			got := b.Admit(model.PortID(p.port), model.Priority(p.prio), model.Bytes(p.size))
			if want := w.admit(p.port, p.prio, p.size); got != want {
				t.Fatalf("Admit%v = %v; want %v, with %v", p, got, want, w.held)
			}
			if got && c.Accounted>>p.prio&1 == 1 {
				inside = append(inside, p)
			}
			check(p.port, p.prio)
		}
		for _, p := range inside {
			b.Release(model.PortID(p.port), model.Priority(p.prio), model.Bytes(p.size))
			w.release(p.port, p.prio, p.size)
			check(p.port, p.prio)
		}
		if w.total() != 0 || b.Shared() != 0 {
			t.Fatalf("after the last packet left %v are shared, the reference holds %v", b.Shared(), w.held)
		}
		for port := range len(c.Ports) + 1 {
			for prio := range Priorities {
				if b.ShouldResume(model.PortID(port), model.Priority(prio)) {
					t.Fatalf("port %d priority %d is empty but was not resumed", port, prio)
				}
			}
		}
	})
}

// TestHPCCOnePriorityStaysWithinBuffer holds what is true of the HPCC
// simulator in the runs it is used for: one data priority.
func TestHPCCOnePriorityStaysWithinBuffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.HPCC, c.Accounted, c.Lossless = true, 0xfe, 0xfe
		for i := range c.Ports {
			c.Ports[i].Xoff, c.Ports[i].Alpha = 0, AlphaShift(1)
		}
		b, err := New(c)
		if err != nil {
			return
		}
		for range rapid.IntRange(1, 200).Draw(t, "packets") {
			port := model.PortID(rapid.IntRange(1, len(c.Ports)).Draw(t, "port"))
			b.Admit(port, 3, model.Bytes(rapid.IntRange(1, 100).Draw(t, "size")))
		}
		sum := model.Bytes(0)
		for port := range c.Ports {
			r, s, h := b.Usage(model.PortID(port+1), 3)
			sum += r + s + h
		}
		if sum > c.Buffer {
			t.Fatalf("the buffer of %v holds %v", c.Buffer, sum)
		}
	})
}
