package mmu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func mustNew(t testing.TB, c Config) *Buffer {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// small is a buffer whose numbers fit in the head: 1000 bytes, of which two
// ports reserve 50 each and keep 100 each as headroom; 700 are shared.
func small(hpcc bool) Config {
	return Config{
		Buffer: 1000, Reserve: 50, ResumeOffset: 11, Accounted: 1 << 3, Lossless: 1 << 3, HPCC: hpcc,
		Ports: []Port{{Headroom: 100, Alpha: AlphaShift(1)}, {Headroom: 100, Alpha: AlphaShift(3)}},
	}
}

// TestStory follows one buffer. Each line is an operation and the state of the
// queue of port 1 afterwards; the numbers are computed by hand.
func TestStory(t *testing.T) {
	for _, hpcc := range []bool{false, true} {
		b := mustNew(t, small(hpcc))
		for _, step := range []struct {
			do   string
			want string
		}{
			{"", "reserve 0B shared 0B headroom 0B xoff 350B"},
			{"+40", "ok reserve 40B shared 0B headroom 0B xoff 350B"},
			{"+40", "ok reserve 50B shared 30B headroom 0B xoff 335B"},
			{"+170", "ok reserve 50B shared 200B headroom 0B xoff 250B"},
			// What counts is the threshold before: 250 shared is not above it.
			{"+50", "ok reserve 50B shared 250B headroom 0B xoff 225B pause"},
			{"+1", "ok reserve 50B shared 250B headroom 1B xoff 225B"},
			{"+60", "ok reserve 50B shared 250B headroom 61B xoff 225B"},
			{"+40", "full reserve 50B shared 250B headroom 61B xoff 225B"},
			{"+39", "ok reserve 50B shared 250B headroom 100B xoff 225B"},
			{"+1", "full reserve 50B shared 250B headroom 100B xoff 225B"},
			{"-60", "reserve 50B shared 250B headroom 40B xoff 225B"},
			{"-63", "reserve 50B shared 227B headroom 0B xoff 236B"},
			{"-1", "reserve 50B shared 226B headroom 0B xoff 237B resume"}, // 226 + 11
			{"-263", "reserve 13B shared 0B headroom 0B xoff 350B"},
			{"-13", "reserve 0B shared 0B headroom 0B xoff 350B"},
		} {
			got := ""
			var op byte
			var size model.Bytes
			if step.do != "" {
				fmt.Sscanf(step.do, "%c%d", &op, &size)
			}
			switch op {
			case '+':
				if got = "full "; b.Admit(1, 3, size) {
					got = "ok "
				}
			case '-':
				b.Release(1, 3, size)
			}
			r, s, h := b.Usage(1, 3)
			got += fmt.Sprintf("reserve %v shared %v headroom %v xoff %v", r, s, h, b.Threshold(1))
			if b.ShouldPause(1, 3) {
				b.SetPaused(1, 3, true)
				got += " pause"
			}
			if b.ShouldResume(1, 3) {
				b.SetPaused(1, 3, false)
				got += " resume"
			}
			if got != step.want {
				t.Errorf("HPCC %v: after %q: %s; want %s", hpcc, step.do, got, step.want)
			}
		}
	}
}

// TestHPCCNumbers repeats by hand what the HPCC simulator computes for a
// switch with 32 hosts at 100 Gb/s and 1 µs, and 4 uplinks at 400 Gb/s.
func TestHPCCNumbers(t *testing.T) {
	links := make([]Link, 36)
	for i := range links {
		links[i] = Link{100 * model.Gbps, time.Microsecond}
		if i >= 32 {
			links[i].Rate = 400 * model.Gbps
		}
	}
	c := HPCCConfig(32*model.MiB, 100*model.Gbps, links)
	b := mustNew(t, c)
	// 32 × 37500 + 4 × 150000 of headroom, 36 × 4096 of reserve.
	const room = 32<<20 - 1800000 - 147456
	if c.SharedBytes() != room {
		t.Errorf("SharedRoom() = %d; want %d", c.SharedBytes(), room)
	}
	if got := b.Threshold(1); got != room>>3 {
		t.Errorf("Threshold of a host's port = %d; want %d", got, room>>3)
	}
	if got := b.Threshold(33); got != room>>1 {
		t.Errorf("Threshold of an uplink = %d; want %d", got, room>>1)
	}
	if !b.Admit(1, 0, 1<<40) || b.Shared() != 0 {
		t.Errorf("queue 0 was accounted: %v shared", b.Shared())
	}

	for _, tc := range []struct {
		port, nic model.Rate
		want      uint8
	}{{100, 100, 3}, {25, 100, 3}, {200, 100, 2}, {400, 100, 1}, {800, 100, 0}, {1600, 100, 0}, {100, 50, 2}, {100, 40, 1}} {
		if got := HPCCShift(tc.port*model.Gbps, tc.nic*model.Gbps); got != tc.want {
			t.Errorf("HPCCShift(%dG, %dG) = %d; want %d", tc.port, tc.nic, got, tc.want)
		}
	}
	for _, tc := range []struct {
		rate  model.Rate
		delay time.Duration
		want  model.Bytes
	}{
		{100 * model.Gbps, time.Microsecond, 37500},
		{25 * model.Gbps, 1500, 14061}, // 4687.5 rounds down before the product
		{100 * model.Gbps, 10, 375},
		{400 * model.Gbps, 0, 0},
	} {
		if got := HPCCHeadroom(tc.rate, tc.delay); got != tc.want {
			t.Errorf("HPCCHeadroom(%v, %v) = %d; want %d", tc.rate, tc.delay, got, tc.want)
		}
	}
}

// TestHPCCDiffers shows the three differences that Config.HPCC names.
func TestHPCCDiffers(t *testing.T) {
	for _, hpcc := range []bool{false, true} {
		c := small(hpcc)
		c.Accounted, c.Lossless = 0x18, 0x08
		c.Ports[0].Alpha, c.Ports[1].Headroom = AlphaShift(0), 0
		b := mustNew(t, c)
		room := model.Bytes(1000 - 100 - 200) // two priorities of two ports reserve
		if hpcc {
			room = 1000 - 100 - 100
		}
		if c.SharedBytes() != room {
			t.Errorf("HPCC %v: SharedRoom() = %v; want %v", hpcc, c.SharedBytes(), room)
		}
		// Port 1 takes all it can, so that Xoff of port 2 is small; its
		// reserve is still whole.
		for b.Admit(1, 3, 1) || b.Admit(1, 4, 1) {
		}
		if b.Threshold(2) >= 40 {
			t.Fatalf("HPCC %v: Threshold(2) = %v; want below 40B", hpcc, b.Threshold(2))
		}
		if got := b.Admit(2, 3, 40); got == hpcc {
			t.Errorf("HPCC %v: Admit of 40B into a reserve of 50B with threshold %v = %v; want %v", hpcc, b.Threshold(2), got, !hpcc)
		}
	}

	for _, hpcc := range []bool{false, true} {
		c := small(hpcc)
		c.Ports[0].Xoff = 2000
		b := mustNew(t, c)
		for b.Admit(1, 3, 1) {
		}
		if !b.Admit(2, 3, 10) || b.Threshold(2) != 0 {
			t.Fatalf("HPCC %v: a full shared buffer: Threshold(2) = %v; want 0B and 10B admitted to the reserve", hpcc, b.Threshold(2))
		}
		if got := b.ShouldPause(2, 3); got != hpcc {
			t.Errorf("HPCC %v: ShouldPause with 10B in a reserve of 50B and threshold 0B = %v; want %v", hpcc, got, hpcc)
		}
	}
}

func TestLossyNeverUsesHeadroom(t *testing.T) {
	c := small(false)
	c.Accounted = 0x0c // priority 2 is lossy
	c.EgressLimit = 300
	b := mustNew(t, c)
	for b.Admit(1, 2, 7) {
	}
	for b.Admit(0, 2, 7) { // the switch's own packets
	}
	for _, port := range []model.PortID{0, 1} {
		if _, s, h := b.Usage(port, 2); h != 0 || s == 0 || b.ShouldPause(port, 2) {
			t.Errorf("full lossy queue of port %d: %v shared, %v headroom, ShouldPause %v; want some, 0B, false", port, s, h, b.ShouldPause(port, 2))
		}
	}
	if b.Admit(0, 3, 1000) {
		t.Error("port 0 was given headroom")
	}
	if b.TailDrop(2, 250, 50) || !b.TailDrop(2, 250, 51) || b.TailDrop(3, 250, 51) {
		t.Errorf("TailDrop(2, 250, 50), (2, 250, 51), (3, 250, 51) = %v, %v, %v; want false, true, false",
			b.TailDrop(2, 250, 50), b.TailDrop(2, 250, 51), b.TailDrop(3, 250, 51))
	}
}

func TestStaticThreshold(t *testing.T) {
	c := small(false)
	c.Ports[0] = Port{Headroom: 100, Xoff: 200, Xon: 120}
	b := mustNew(t, c)
	b.Admit(1, 3, 249)
	if b.ShouldPause(1, 3) {
		t.Error("ShouldPause with 199B shared = true; want false below Xoff 200B")
	}
	b.Admit(1, 3, 1)
	if !b.ShouldPause(1, 3) {
		t.Error("ShouldPause with 200B shared = false; want true at Xoff")
	}
	b.SetPaused(1, 3, true)
	b.Release(1, 3, 79)
	if b.ShouldResume(1, 3) {
		t.Error("ShouldResume with 121B shared = true; want false above Xon 120B")
	}
	b.Release(1, 3, 1)
	if !b.ShouldResume(1, 3) {
		t.Error("ShouldResume with 120B shared = false; want true at Xon")
	}
}

// TestStaticThresholdAboveTheRoom: what is not there cannot be shared, whatever
// Xoff allows.
func TestStaticThresholdAboveTheRoom(t *testing.T) {
	c := small(false)
	c.Ports[0] = Port{Headroom: 100, Xoff: 5000}
	for size, want := range map[model.Bytes]bool{750: true, 751: false} {
		b := mustNew(t, c)
		if got := b.Admit(1, 3, size); got != want {
			t.Errorf("Admit of %v into a reserve of 50B and a shared buffer of 700B = %v; want %v", size, got, want)
		}
	}
}

func TestReleaseOfTooMuchPanics(t *testing.T) {
	b := mustNew(t, small(false))
	b.Admit(1, 3, 10)
	defer func() {
		want := "mmu: port 1 priority 3: released 11B, 1B more than it held"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panic %q; want %q", got, want)
		}
	}()
	b.Release(1, 3, 11)
}

func TestCheckErrors(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"mmu: buffer 0B, want 1B to 1TiB":                                                 func(c *Config) { c.Buffer = 0 },
		"mmu: reserve -1B, want 0B to the buffer's 1KB":                                   func(c *Config) { c.Reserve = -1 },
		"mmu: resume offset -1B, want":                                                    func(c *Config) { c.ResumeOffset = -1 },
		"mmu: egress limit -1B, want at least 0B":                                         func(c *Config) { c.EgressLimit = -1 },
		"mmu: lossless priorities 00011000, want only accounted ones, which are 00001000": func(c *Config) { c.Lossless = 0x18 },
		"mmu: 0 ports, want 1 to 4096":                                                    func(c *Config) { c.Ports = nil },
		"mmu: port 2: headroom -1B, want":                                                 func(c *Config) { c.Ports[1].Headroom = -1 },
		"mmu: port 1: Xoff -1B, want":                                                     func(c *Config) { c.Ports[0].Xoff = -1 },
		"mmu: port 1: Xon 20B, want at least 0B and below Xoff, which is 20B":             func(c *Config) { c.Ports[0].Xoff, c.Ports[0].Xon = 20, 20 },
		"mmu: port 1: alpha 1/0, want both terms from 1 to 65536":                         func(c *Config) { c.Ports[0].Alpha.Den = 0 },
		"buffer 300B, want more than 300B: headroom takes 200B and reserve 100B of 2 ports, and nothing is left to share": func(c *Config) { c.Buffer = 300 },
	} {
		c := small(false)
		spoil(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v; want an error with %q", c, err, want)
		}
	}
}

// TestPauseBytes fills queues byte by byte until PFC fires.
func TestPauseBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		c.Accounted, c.Lossless = 1<<3, 1<<3
		if c.Check() != nil {
			t.Skip("no shared buffer")
		}
		for i := range c.Ports {
			c.Ports[i] = c.Ports[0]
		}
		loaded := rapid.IntRange(1, len(c.Ports)).Draw(t, "loaded")
		b, err := New(c)
		if err != nil {
			t.Skip("no shared buffer")
		}
		want := c.PauseBytes(1, loaded)
		for n := model.Bytes(1); ; n++ {
			for p := loaded; p >= 1; p-- { // port 1 comes last: the others hold as much
				if !b.Admit(model.PortID(p), 3, 1) {
					t.Skip("headroom of 0 is full at once: nothing to compare")
				}
			}
			if b.ShouldPause(1, 3) {
				if n != want && !(c.HPCC && want == c.Reserve) {
					t.Fatalf("PFC fired at %v in each of %d queues; PauseBytes(1, %d) = %v, of %+v", n, loaded, loaded, want, c)
				}
				return
			}
		}
	})
}

func TestAdmitAllocatesNothing(t *testing.T) {
	b := mustNew(t, small(false))
	if n := testing.AllocsPerRun(100, func() {
		b.Admit(1, 3, 60)
		b.ShouldPause(1, 3)
		b.Release(1, 3, 60)
		b.ShouldResume(1, 3)
	}); n != 0 {
		t.Errorf("a packet's life allocates %v times", n)
	}
}

// BenchmarkPacket is a packet's life: admission, release, and whether each
// calls for a PFC frame.
func BenchmarkPacket(b *testing.B) {
	links := make([]Link, 32)
	for i := range links {
		links[i] = Link{100 * model.Gbps, time.Microsecond}
	}
	native := DefaultConfig(16*model.MiB, 1500, links)
	third := DefaultConfig(16*model.MiB, 1500, links)
	for i := range third.Ports {
		third.Ports[i].Alpha = Alpha{1, 3}
	}
	for name, c := range map[string]Config{"native": native, "alpha=third": third, "hpcc": HPCCConfig(16*model.MiB, 100*model.Gbps, links)} {
		for _, pfc := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/pfc=%v", name, pfc), func(b *testing.B) {
				buf := mustNew(b, c)
				for p := range links { // past the reserve, so that thresholds count
					buf.Admit(model.PortID(p+1), 3, 8*model.KiB)
				}
				var port model.PortID
				for b.Loop() {
					port = port&31 + 1
					buf.Admit(port, 3, 1048)
					if pfc {
						buf.ShouldPause(port, 3)
					}
					buf.Release(port, 3, 1048)
					if pfc {
						buf.ShouldResume(port, 3)
					}
				}
			})
		}
	}
}
