package audit

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// TestAddFlowEqualsReference compares all sums of ports with those of slowAddFlow: of paths that
// are whole, that have gaps, that return, and of ports that the fabric does not have.
func TestAddFlowEqualsReference(t *testing.T) {
	r := newRig(t, 5)
	unclear, own := 0, 0
	for range 200 {
		sums, want := newSlotSums(r.ports), newSlotSums(r.ports)
		for i := range r.flows {
			f := &r.flows[i]
			var hops []paths.Sighting
			at := r.fabric.Node(mustByAddr(r.fabric, f.key.Src)).Ports[0].Peer
			for _, p := range f.hops {
				h := paths.Sighting{Packets: r.rng.Uint64N(100), Bytes: r.rng.Uint64N(100), Switch: p.Node, In: at.Port, Out: p.Port, Exact: true}
				at = r.fabric.Port(p).Peer
				switch r.rng.IntN(60) {
				case 0:
					continue // it did not report
				case 1:
					h.Exact = false
				case 2:
					h.In = 0
				case 3:
					h.Out = 0
				case 4:
					h.Out = model.PortID(r.rng.IntN(60))
				case 5:
					hops = append(hops, h) // as in a loop
				}
				hops = append(hops, h)
			}
			sums.addFlow(&f.key, hops)
			want.slowAddFlow(&f.key, hops)
		}
		for n := range uint32(r.ports.Len()) {
			got, want := &sums.sums[n], &want.sums[n]
			if *got != *want {
				t.Fatalf("port %v: %+v; want %+v", r.ports.Port(n), *got, *want)
			}
			if own += int(want.ownNext + want.ownPrev); want.unclear {
				unclear++
			}
		}
		if !slices.Equal(sums.touched, want.touched) {
			t.Fatalf("touched %v; want %v", sums.touched, want.touched)
		}
	}
	if unclear == 0 || own == 0 {
		t.Errorf("%d ports unclear, %d packets of their own; the test needs both", unclear, own)
	}
}

// slowAddFlow is addFlow with every question asked where its answer is needed.
func (t *slotSums) slowAddFlow(key *model.FlowKey, hops []paths.Sighting) {
	linked := func(i int) bool { // hop i leads to the one after it
		if i < 0 || i+1 >= len(hops) || hops[i].Out == 0 {
			return false
		}
		p := t.ports.Peer(hops[i].Switch, hops[i].Out)
		return p.Kind == paths.SwitchPeer && p.Port == model.Port{Node: hops[i+1].Switch, Port: hops[i+1].In}
	}
	for i, h := range hops {
		n := amount{h.Packets, h.Bytes}
		in, out := t.at(h.Switch, h.In), t.at(h.Switch, h.Out)
		if in != nil {
			in.in.add(n)
			in.unclear = in.unclear || !h.Exact
			if linked(i) {
				in.next.add(amount{hops[i+1].Packets, hops[i+1].Bytes})
			} else {
				in.next.add(n)
				in.ownNext += h.Packets
			}
		}
		if out != nil {
			out.out.add(n)
			out.unclear = out.unclear || !h.Exact
			if linked(i - 1) {
				out.prev.add(amount{hops[i-1].Packets, hops[i-1].Bytes})
			} else {
				out.prev.add(n)
				out.ownPrev += h.Packets
			}
		}
		if i > 0 && !linked(i-1) {
			t.markUnclear(hops[i-1].Switch, hops[i-1].Out)
			t.markUnclear(h.Switch, h.In)
		}
	}
	if n := len(hops); n > 1 {
		last := t.ports.Peer(hops[n-1].Switch, hops[n-1].Out)
		if last.Kind == paths.SwitchPeer && slices.ContainsFunc(hops, func(h paths.Sighting) bool { return h.Switch == last.Node }) {
			for _, h := range hops {
				t.markUnclear(h.Switch, h.In)
				t.markUnclear(h.Switch, h.Out)
			}
		}
	}
	t.addOriginated(key, hops)
}

// BenchmarkAddFlow adds flows of five hops.
func BenchmarkAddFlow(b *testing.B) {
	r := newRig(b, 5)
	sums := newSlotSums(r.ports)
	list := make([][]paths.Sighting, len(r.flows))
	for i := range r.flows {
		at := r.fabric.Node(mustByAddr(r.fabric, r.flows[i].key.Src)).Ports[0].Peer
		for _, p := range r.flows[i].hops {
			list[i] = append(list[i], paths.Sighting{Packets: 3, Bytes: 300, Switch: p.Node, In: at.Port, Out: p.Port, Exact: true})
			at = r.fabric.Port(p).Peer
		}
	}
	hops := 0
	for b.Loop() {
		for i := range list {
			sums.addFlow(&r.flows[i].key, list[i])
			hops += len(list[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(hops), "ns/hop")
}
