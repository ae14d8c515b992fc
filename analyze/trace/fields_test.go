package trace

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestFields asks about three packets: one that arrived, one that was lost at
// its second switch, one that went to a backend in a tunnel.
func TestFields(t *testing.T) {
	w := pathTo(t, 15)
	list, _ := gather(t, noPorts(), func(a *Assembler) {
		for i, at := range w {
			m := seen(at, 15, uint8(64-i), 7, model.Time(1000*i))
			m.Out = 3
			a.AddMirror(model.Time(i), m)
		}
		a.AddMirror(10, seen(w[1], 15, 63, 8, 1500))
		a.AddMirror(10, seen(w[0], 15, 64, 8, 0))
		a.AddMirror(11, seen(w[0], 15, 64, 8, 0))
		for i, hs := range [][]header{
			{{ipOf(0), ipOf(14), 64}},
			{{ipOf(1), ipOf(15), 64}, {ipOf(0), ipOf(14), 63}},
		} {
			f := frame(hs, 1, 9, make([]byte, 20))
			a.AddMirror(20, &mirror.Mirror{Reasons: mirror.Debug, Switch: w[0], Time: model.Time(2_000_000 * i), Length: uint16(len(f)), Frame: f})
		}
	})
	byID := map[uint32]*Trace{}
	for _, tr := range list {
		byID[tr.IPID] = tr
	}
	s := Schema(fabric)
	name := func(i int) string { return fabric.Node(w[i]).Name }
	port := fabric.PortRef(model.Port{Node: w[2], Port: 3})
	link := linkName(fabric, model.Port{Node: w[2], Port: 3})
	for id, tc := range map[uint32]struct{ yes, no []string }{
		7: {
			[]string{
				"trace.end == arrived", "!trace.drop", "trace.hops == 5", "trace.latency == 4us", "hop.latency == 1us", "hop.switch == " + name(3), "hop.port == " + port, `hop.link == "` + link + `"`,
				"trace.first == " + name(0), "trace.last == " + name(4), "hop.ttl in {60}", "hop.out == 3", "ip.dst == h15", "ip.src == h0", "udp.port == 9", "hop.switch contains tor", "hop.dst == h15", "trace.lost == 0",
			},
			[]string{"trace.loop", "trace.drop", "mux.latency", "trace.duplicate", "trace.debug", "hop.latency > 1us", "hop.ttl == 59", "hop.switch != " + name(3)},
		},
		8: {
			[]string{"trace.drop", "trace.end == lost", "trace.hops < 3", "trace.last == " + name(1), "trace.reordered == 1", "trace.duplicate", "trace.latency == 1.5us"},
			[]string{"hop.switch == " + name(3), "trace.end in {arrived, looped}"},
		},
		9: {
			[]string{"mux.latency > 1ms", "trace.debug", "hop.depth == 2", "ip.src == h0", "hop.dst == h15"},
			[]string{"mux.latency > 3ms", "hop.latency", "ip.src == h0,h1", "trace.protocol"}, // seen first without a tunnel
		},
	} {
		for i, text := range append(append([]string{}, tc.yes...), tc.no...) {
			f, err := s.Parse(text)
			if err != nil {
				t.Error(err)
				continue
			}
			var v View
			if got := f.Match(v.SetTrace(byID[id])); got != (i < len(tc.yes)) {
				t.Errorf("packet %d, %q: %v", id, text, got)
			}
		}
	}
}

func TestFieldsOfOddTraces(t *testing.T) {
	// A switch and ports that the fabric does not have, and no IP.
	list, _ := gather(t, noPorts(), func(a *Assembler) {
		m := seen(9999, 15, 64, 7, 0)
		m.Out = 77
		a.AddMirror(0, m)
		m = seen(16, 15, 64, 8, 0)
		m.Out = 77
		a.AddMirror(0, m)
		a.AddMirror(0, &mirror.Mirror{Switch: 16, Frame: make([]byte, 20), Length: 20})
	})
	var v View
	for _, tr := range list {
		for _, f := range Schema(fabric).Fields() {
			for i := range 5 {
				if x, ok := f.Get(v.SetTrace(tr), i); ok && f.Name == "hop.port" {
					t.Errorf("%v has port %v", tr.ID, x)
				}
			}
		}
	}
	if len(list) != 3 {
		t.Errorf("%d traces; want 3", len(list))
	}
	if _, err := Schema(fabric).Parse("hop.switch == tor99"); err == nil || !strings.Contains(err.Error(), `"tor99" is not a value of hop.switch`) {
		t.Errorf("a switch that is not there: %v", err)
	}
}

func TestFilterAllocatesNothing(t *testing.T) {
	list, _ := gather(t, noPorts(), func(a *Assembler) {
		for i, at := range pathTo(t, 15) {
			a.AddMirror(model.Time(i), seen(at, 15, uint8(64-i), 7, model.Time(1000*i)))
		}
	})
	f, err := Schema(fabric).Parse("ip.src == h0 && hop.switch contains tor && trace.latency < 1ms && !trace.drop && hop.ttl == 60")
	if err != nil {
		t.Fatal(err)
	}
	v := &View{}
	if n := testing.AllocsPerRun(100, func() {
		if !f.Match(v.SetTrace(list[0])) {
			t.Error("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}
