package congestion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// TestMellanoxByHand follows one flow of the HPCC simulator with its example
// configuration. The rates were computed apart from this package, update by
// update.
func TestMellanoxByHand(t *testing.T) {
	p := HPCCSimDCQCN()
	s := p.newControl(100 * model.Gbps)
	first := 10 * engine.Microsecond
	cnps := []engine.Time{first, first + 5500*engine.Nanosecond, first + 1000250*engine.Nanosecond}
	for _, want := range []struct {
		after        engine.Time // since the first CNP
		rate, target model.Rate
		why          string
	}{
		{0, 100000000000, 100000000000, "the first CNP only starts the timers"},
		{4000 * engine.Nanosecond, 100000000000, 100000000000, "the check comes 1 ns after alpha"},
		{4001 * engine.Nanosecond, 50776684272, 100000000000, "alpha has decayed four times"},
		{8000 * engine.Nanosecond, 50776684272, 100000000000, "the second CNP waits"},
		{8001 * engine.Nanosecond, 26072565153, 100000000000, "no increase yet: the target stays"},
		{900000 * engine.Nanosecond, 26072565153, 100000000000, "900 µs start at the last cut"},
		{908001 * engine.Nanosecond, 63036282576, 100000000000, "one increase of fast recovery"},
		{1004001 * engine.Nanosecond, 62292717268, 63036282576, "after an increase the target is clamped"},
		{1904001 * engine.Nanosecond, 62664499922, 63036282576, "fast recovery"},
		{2804001 * engine.Nanosecond, 62875391249, 63086282576, "additive increase"},
		{3704001 * engine.Nanosecond, 63030836912, 63186282576, "hyper increase"},
	} {
		at := first + want.after
		for len(cnps) > 0 && cnps[0] <= at {
			s.OnCNP(cnps[0])
			cnps = cnps[1:]
		}
		s.OnTimer(at)
		if s.Rate() != want.rate || s.Target() != want.target {
			t.Errorf("%d ns after the first CNP: rate %d, target %d; want %d, %d: %s", want.after/engine.Nanosecond, s.Rate(), s.Target(), want.rate, want.target, want.why)
		}
	}
}

// TestMellanoxTimersThatMeet: an increase and a check for CNPs due at once, which
// happens whenever one interval divides the other. The increase comes first
// where its timer is the longer, and then the check clamps the target.
func TestMellanoxTimersThatMeet(t *testing.T) {
	for _, tc := range []struct {
		increase     time.Duration
		rate, target model.Rate
	}{
		{8 * time.Microsecond, 37.5e9, 75e9}, // up to 75, then clamped and cut
		{4 * time.Microsecond, 25e9, 100e9},  // cut, and the increase timer restarts
	} {
		p := HPCCSimDCQCN()
		p.IncreaseInterval, p.AlphaInterval = tc.increase, time.Second // alpha stays 1
		s := p.newControl(100 * model.Gbps)
		s.OnCNP(0)
		meet := 4001*engine.Nanosecond + engine.Of(tc.increase)
		s.OnCNP(meet - 1)
		if s.Rate() != 50*model.Gbps || s.Next() != meet {
			t.Fatalf("increase interval %v: rate %v, next at %v before timers meet; want 50Gb/s, %v", tc.increase, s.Rate(), s.Next(), meet)
		}
		if s.OnTimer(meet); s.Rate() != tc.rate || s.Target() != tc.target {
			t.Errorf("increase interval %v: rate %v, target %v after timers met; want %v, %v", tc.increase, s.Rate(), s.Target(), tc.rate, tc.target)
		}
	}
}

// TestPublishedByHand follows the paper's text.
func TestPublishedByHand(t *testing.T) {
	p := PaperDCQCN()
	s := p.newControl(100 * model.Gbps)
	if s.OnSent(0, 100*model.MB); s.Next() != engine.Forever {
		t.Errorf("Next() of a flow without CNP = %d; want forever", s.Next())
	}
	s.OnCNP(0) // alpha is 1 and stays so
	if s.Rate() != 50*model.Gbps || s.Target() != 100*model.Gbps || s.Alpha() != 1 {
		t.Errorf("after a CNP: rate %v, target %v, alpha %v; want 50Gb/s, 100Gb/s, 1", s.Rate(), s.Target(), s.Alpha())
	}
	at := 20 * engine.Microsecond
	s.OnCNP(at)
	for i, want := range []model.Rate{25e9, 37.5e9, 43.75e9, 46.875e9, 48.4375e9, 49.21875e9, 49.629375e9, 49.8546875e9} {
		if s.OnTimer(at + engine.Time(i)*55*engine.Microsecond); s.Rate() != want {
			t.Errorf("%d increase intervals after the second CNP: rate %d; want %d", i, s.Rate(), want)
		}
	}
	if s.Target() != 50.08e9 {
		t.Errorf("target %v; want 50.08Gb/s, raised twice", s.Target())
	}
	now := at + 386*engine.Microsecond
	s.OnSent(now, 10*model.MB-1)
	if s.Target() != 50.08e9 {
		t.Errorf("target %v one byte before the counter is full; want 50.08Gb/s", s.Target())
	}
	s.OnSent(now, 1)
	if s.Target() != 50.12e9 || s.Rate() != 49.98734375e9 {
		t.Errorf("rate %d, target %d after 10MB; want 49987343750, 50120000000", s.Rate(), s.Target())
	}

	// Alpha decays for each 55 µs without a CNP: here 7, the eighth is 1 ps off.
	s.OnCNP(at + 8*55*engine.Microsecond - 1)
	want := 1.
	for range 7 {
		want *= 255. / 256
	}
	if want = want*255/256 + 1./256; s.Alpha() != want {
		t.Errorf("Alpha() = %v; want %v", s.Alpha(), want)
	}
}

// TestPublishedHyperIncrease needs both the timer and the bytes to be past F.
func TestPublishedHyperIncrease(t *testing.T) {
	p := PaperDCQCN()
	p.FastRecovery, p.HAI = 1, model.Gbps
	s := p.newControl(100 * model.Gbps)
	s.OnCNP(0)
	s.OnCNP(1) // target 50 Gb/s, rate 25 Gb/s
	for i, want := range []model.Rate{50e9, 50.04e9, 50.08e9} {
		if s.OnTimer(1 + engine.Time(i+1)*55*engine.Microsecond); s.Target() != want {
			t.Errorf("target %v after %d steps by time; want %v", s.Target(), i+1, want)
		}
	}
	for i, want := range []model.Rate{50.12e9, 50.16e9, 51.16e9} {
		if s.OnSent(166*engine.Microsecond, p.ByteCounter); s.Target() != want {
			t.Errorf("target %v after %d steps by bytes; want %v", s.Target(), i+1, want)
		}
	}
}

// TestRecoveryIsMonotonic cuts a flow as low as it goes and leaves it alone.
func TestRecoveryIsMonotonic(t *testing.T) {
	const line = 100 * model.Gbps
	for name, p := range map[string]*DCQCNParams{"HPCC": HPCCSimDCQCN(), "Paper": PaperDCQCN()} {
		s := p.newControl(line)
		var now engine.Time
		for range 3000 {
			now += 50 * engine.Microsecond
			s.OnCNP(now)
		}
		s.OnTimer(now + 49*engine.Microsecond)
		if s.Rate() != p.MinRate {
			t.Errorf("%s: rate %v after 3000 CNPs; want the lowest, %v", name, s.Rate(), p.MinRate)
		}
		last, events := s.Rate(), 0
		for s.Next() != engine.Forever {
			now = s.Next()
			if s.OnTimer(now); s.Rate() < last {
				t.Fatalf("%s: rate fell from %v to %v without a CNP", name, last, s.Rate())
			}
			if last = s.Rate(); now > 10000*1000*engine.Microsecond {
				break
			}
			events++
		}
		if s.Rate() < line-1 || s.Next() != engine.Forever {
			t.Errorf("%s: rate %d after %d steps, next at %d; want %d, forever", name, s.Rate(), events, s.Next(), line)
		}
		lazy := p.newControl(line)
		for i := range 3000 {
			lazy.OnCNP(engine.Time(i+1) * 50 * engine.Microsecond)
		}
		if lazy.OnTimer(now); lazy.Rate() != s.Rate() {
			t.Errorf("%s: rate %d when caught up once, %d when at each step", name, lazy.Rate(), s.Rate())
		}
	}
}

func TestParams(t *testing.T) {
	p := HPCCSimDCQCN()
	for want, spoil := range map[string]func(*DCQCNParams){
		"dcqcn: variant 2, want":                                        func(p *DCQCNParams) { p.Variant = 2 },
		"dcqcn: gain 0, want above 0 and at most 1":                     func(p *DCQCNParams) { p.Gain = 0 },
		"dcqcn: alpha interval 0s, want above 0 and at most 1h0m0s":     func(p *DCQCNParams) { p.AlphaInterval = 0 },
		"dcqcn: decrease interval 0s, want above 0 and at most 1h0m0s":  func(p *DCQCNParams) { p.DecreaseInterval = 0 },
		"dcqcn: increase interval 0s, want above 0 and at most 1h0m0s":  func(p *DCQCNParams) { p.IncreaseInterval = 0 },
		"dcqcn: -1 increases of fast recovery, want at least 0":         func(p *DCQCNParams) { p.FastRecovery = -1 },
		"dcqcn: increases -1b/s and 100Mb/s, want at least 0b/s":        func(p *DCQCNParams) { p.AI = -1 },
		"dcqcn: min rate 0b/s, want at least 1b/s":                      func(p *DCQCNParams) { p.MinRate = 0 },
		"dcqcn: byte counter -1B, want at least 0B":                     func(p *DCQCNParams) { p.Variant, p.ByteCounter = Published, -1 },
		"dcqcn: rate after the first CNP 0, want above 0 and at most 1": func(p *DCQCNParams) { p.FirstRate = 0 },
	} {
		bad := *p
		spoil(&bad)
		if err := bad.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Check() = %v; want %q", err, want)
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	p := HPCCSimDCQCN()
	s := p.newControl(100 * model.Gbps)
	var now engine.Time
	if n := testing.AllocsPerRun(100, func() {
		now += 3 * engine.Microsecond
		s.OnCNP(now)
		s.OnSent(now, 1000)
		s.OnTimer(now)
	}); n != 0 {
		t.Errorf("a CNP allocates %v times", n)
	}
}

// BenchmarkCNP is a CNP after a time without: what the time costs shows in the
// difference between gaps.
func BenchmarkCNP(b *testing.B) {
	for name, p := range map[string]*DCQCNParams{"mellanox": HPCCSimDCQCN(), "published": PaperDCQCN()} {
		for _, gap := range []time.Duration{100, time.Microsecond, 50 * time.Microsecond, 10 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/gap=%v", name, gap), func(b *testing.B) {
				s := p.newControl(100 * model.Gbps)
				var now engine.Time
				for b.Loop() {
					now += engine.Of(gap)
					s.OnCNP(now)
				}
			})
		}
	}
}

// BenchmarkOnTimer is what a sender pays per packet for the current rate.
func BenchmarkOnTimer(b *testing.B) {
	p := HPCCSimDCQCN()
	s := p.newControl(100 * model.Gbps)
	s.OnCNP(0)
	var now engine.Time
	for b.Loop() {
		now += 80 * engine.Nanosecond
		s.OnTimer(now)
		if s.Rate() == 0 {
			b.Fatal("no rate")
		}
	}
}
