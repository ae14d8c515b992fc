package ebpf

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/inswitch"
	inmirror "github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

func mirrorConfig() inmirror.Config {
	cfg := inmirror.DefaultConfig()
	cfg.Protocol, cfg.Rate, cfg.SampleOneIn, cfg.Seed, cfg.List, cfg.Lists = false, 0, 3, 99, 100, 5
	return cfg
}

func loadMirrors(t testing.TB, f *fabric, cfg inmirror.Config) *Mirrors {
	t.Helper()
	m, err := LoadMirrors(testSwitch, cfg)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, at := range f.ifindex {
		if err := m.NumberPort(at, model.PortID(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// mirrored is a report of one mirror.
type mirrored struct {
	list dta.ListID
	data []byte
}

// all returns what the kernel has selected.
func (m *Mirrors) all(t testing.TB) (got []mirrored) {
	t.Helper()
	if err := m.Interrupt(); err != nil {
		t.Fatal(err)
	}
	for {
		err := m.Read(func(list dta.ListID, data []byte) { got = append(got, mirrored{list, slices.Clone(data)}) })
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mirrorReference is inswitch/mirror on frames.
type mirrorReference struct {
	*inmirror.Program
	routes *reference
}

func (r mirrorReference) mirrors(t testing.TB, in model.PortID, frame []byte) (want []mirrored) {
	t.Helper()
	var act inswitch.Actions
	r.Observe(&inswitch.Event{Stage: inswitch.Ingress, In: in, Packet: viewOf(t, frame), Switch: r.routes}, &act)
	for _, rep := range act.Reports {
		want = append(want, mirrored{rep.List, slices.Clone(rep.Data)})
	}
	return want
}

// timeless returns an encoded mirror with the time 0.
func timeless(data []byte) []byte {
	const timeAt, timeEnd = 12, 20
	clear(data[timeAt:timeEnd])
	return data
}

// TestMirrorsEqualReference passes frames of all kinds, good and damaged, to the kernel's
// program and to inswitch/mirror: both mirror the same packets for the same reasons, into
// the same lists, byte for byte but for the time.
func TestMirrorsEqualReference(t *testing.T) {
	for name, change := range map[string]func(*inmirror.Config){
		"all reasons":    func(*inmirror.Config) {},
		"sample alone":   func(c *inmirror.Config) { c.TCPFlags, c.DebugMask, c.SampleOneIn = false, 0, 2 },
		"TCP flags":      func(c *inmirror.Config) { c.DebugMask, c.SampleOneIn = 0, 0 },
		"everything":     func(c *inmirror.Config) { c.SampleOneIn, c.Lists = 1, 1 },
		"a longer start": func(c *inmirror.Config) { c.Truncate, c.DebugMask = MaxTruncate, 0x2f },
	} {
		t.Run(name, func(t *testing.T) {
			f, cfg := newFabric(t), mirrorConfig()
			change(&cfg)
			kernel := loadMirrors(t, f, cfg)
			p, err := inmirror.New(inswitch.Device{ID: testSwitch, Ports: make([]inswitch.Port, 8)}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			want := mirrorReference{p, &reference{t: t, route: f.Route}}
			draw := newFrames(13)
			for i := range race.Less(3000, 800) {
				port, frame := 1+draw.IntN(len(f.ifindex)), draw.next(14+40)
				run(t, kernel.objects.MirrorTcx, &skbContext{IngressIfindex: uint32(f.ifindex[port-1])}, frame)
				compareMirrors(t, i, frame, kernel.all(t), want.mirrors(t, model.PortID(port), frame))
			}
			got, err := kernel.Stats()
			if err != nil {
				t.Fatal(err)
			}
			s := p.Stats()
			s.Packets = 0 // the kernel counts what it selects
			if got.Stats != s || got.Lost != 0 {
				t.Errorf("counters %+v; want %+v", got, s)
			}
			if s.Mirrored == 0 || name == "all reasons" && min(s.Flag, s.Sample, s.Debug, s.Telemetry) == 0 {
				t.Errorf("counters %+v; want packets of all kinds", s)
			}
		})
	}
}

func compareMirrors(t *testing.T, i int, frame []byte, got, want []mirrored) {
	t.Helper()
	same := slices.EqualFunc(got, want, func(g, w mirrored) bool {
		return g.list == w.list && bytes.Equal(timeless(g.data), timeless(w.data))
	})
	if same {
		return
	}
	text := func(all []mirrored) (lines []any) {
		for _, one := range all {
			var m mirror.Mirror
			_, err := m.Parse(one.data)
			lines = append(lines, one.list, m, err)
		}
		return lines
	}
	t.Fatalf("frame %d %x: kernel mirrors %+v; want %+v", i, frame, text(got), text(want))
}

// TestMirrorsKeepTags has the kernel take a frame's VLAN tag out, as it does for programs
// of tc: the mirror has it.
func TestMirrorsKeepTags(t *testing.T) {
	f, cfg := newFabric(t), mirrorConfig()
	cfg.SampleOneIn = 1
	kernel := loadMirrors(t, f, cfg)
	if err := kernel.Attach(f.ifindex[1], TC); err != nil {
		t.Fatal(err)
	}
	plain := tcpFrame(9, 300)
	frame := slices.Concat(plain[:macs], []byte{0x81, 0x00, 0x20, 0x07}, plain[macs:])
	rawSender(t, "peerport2")(frame)
	for _, one := range kernel.all(t) {
		var m mirror.Mirror
		if _, err := m.Parse(one.data); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(m.Frame, frame[:cfg.Truncate]) && int(m.Length) == len(frame) && m.In == 2 {
			return
		}
		t.Logf("%+v", m)
	}
	t.Errorf("no mirror of %x from port 2", frame[:cfg.Truncate])
}

// TestMirrorsAreLimited spends the budget of a window: what follows is counted, and marked
// packets pass longer than samples.
func TestMirrorsAreLimited(t *testing.T) {
	const packets = 4000
	f, cfg := newFabric(t), mirrorConfig()
	cfg.SampleOneIn, cfg.Rate = 1, 20_000 // 167 bytes in a window: one mirror, and none that leaves a quarter
	kernel := loadMirrors(t, f, cfg)
	frame := tcpFrame(9, 300)
	for range packets {
		run(t, kernel.objects.MirrorTcx, nil, frame)
	}
	got := len(kernel.all(t))
	frame[15] = 1 << 2 // the debug mark
	for range packets {
		run(t, kernel.objects.MirrorTcx, nil, frame)
	}
	marked := len(kernel.all(t))
	s, err := kernel.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if got != 0 || marked == 0 || int(s.Mirrored) != marked || s.Mirrored+s.RateLimited != 2*packets {
		t.Errorf("%d mirrors of samples, %d of marked packets, %+v; want none, some, and all accounted for", got, marked, s)
	}
}

// TestMirrorsRefuse checks the complaints about what the kernel's program does not do.
func TestMirrorsRefuse(t *testing.T) {
	for name, change := range map[string]func(*inmirror.Config){
		"protocols": func(c *inmirror.Config) { c.Protocol = true },
		"rules":     func(c *inmirror.Config) { c.Rules = []inmirror.Rule{{}} },
		"ERSPAN":    func(c *inmirror.Config) { c.Collectors = []model.Addr{model.Addr4(1)} },
		"too long":  func(c *inmirror.Config) { c.Truncate = MaxTruncate + 1 },
	} {
		cfg := mirrorConfig()
		change(&cfg)
		if _, err := LoadMirrors(testSwitch, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
