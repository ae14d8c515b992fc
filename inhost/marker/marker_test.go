package marker

import (
	"testing"

	"github.com/weft-telemetry/weft/inhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

func frame(port uint16) []byte {
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	b = packet.IPv4{Length: 128, TTL: 9, Proto: model.UDP, Src: 1 << 24, Dst: 2 << 24}.AppendTo(b)
	b = packet.UDP{SrcPort: 1, DstPort: port, Length: 108}.AppendTo(b)
	return append(b, make([]byte, 100)...)
}

func to(port uint16) func(*packet.Packet) bool {
	return func(p *packet.Packet) bool { return p.Innermost().Key.DstPort == port }
}

func TestMarks(t *testing.T) {
	cfg := Config{Mark: 1, Budget: inhost.Budget{Rate: 8 * model.Mbps, Burst: 300}} // a byte per µs
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if m.HasRules() || m.Enable(Rule{Name: "nothing"}) == nil {
		t.Error("a marker without rules is active, or a rule without a match is taken")
	}
	for _, r := range []Rule{{"a", to(9)}, {"b", to(80)}, {"a", to(7)}} {
		if err := m.Enable(r); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		at   model.Time
		port uint16
		want uint8
	}{
		{0, 9, 0},  // its rule was replaced
		{0, 7, 1},  // 142 bytes
		{0, 80, 1}, // 284
		{0, 80, 0}, // no budget
		{126_000, 80, 1},
	} {
		if got := m.Mark(step.at, frame(step.port), 142); got != step.want {
			t.Errorf("step %d, port %d: mark %d; want %d", i, step.port, got, step.want)
		}
	}
	if got := m.Mark(1e9, []byte{1, 2, 3}, 60); got != 0 {
		t.Errorf("a frame without IP is marked %d", got)
	}
	if s := m.Stats(); s != (Stats{Seen: 6, Marked: 3, RateLimited: 1}) {
		t.Errorf("%+v; want 6 seen, 3 marked, 1 limited", s)
	}
	if !m.Disable("b") || m.Disable("b") || m.Mark(2e9, frame(80), 142) != 0 {
		t.Error("a rule outlives its end")
	}
	f := frame(7)
	if n := testing.AllocsPerRun(100, func() { m.Mark(3e9, f, 142) }); n != 0 {
		t.Errorf("Mark allocates %v times; want 0", n)
	}
	for _, mark := range []uint8{0, 64} {
		if _, err := New(Config{Mark: mark}); err == nil {
			t.Errorf("mark %d is taken", mark)
		}
	}
}
