package simhost

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/packet"
)

// inBand attaches a ticker to both switches of a dumbbell whose host 3 collects.
func inBand(t *testing.T, n *sim.Network, cfg InBandConfig) (in *inbox, near, far *Switch) {
	t.Helper()
	in = newInbox(t)
	cfg.Collector = 3
	b, err := NewInBand(n, cfg, in.take)
	if err != nil {
		t.Fatal(err)
	}
	host := Config{Linger: 5 * time.Microsecond, Carrier: b}
	far = attach(t, n, 4, host, &ticker{size: 20})
	near = attach(t, n, 5, host, &ticker{size: 20})
	return in, near, far
}

func TestInBandReportsArePackets(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	others := 0
	n.Host(3).SetReceiver(func(*sim.Packet) { others++ })
	in, near, far := inBand(t, n, InBandConfig{Priority: 2})
	var frame []byte
	link := n.Port(model.Port{Node: 4, Port: 3})
	link.SetTap(func(_ engine.Time, p *sim.Packet) { frame = n.AppendFrame(frame[:0], p, link) })
	n.At(1*ms, func() {
		h := n.Host(0)
		p := h.NewPacket()
		p.Kind, p.TTL, p.Size = sim.KindOther, 64, 60
		p.Key = model.FlowKey{Src: n.Fabric().Node(0).IPv4, Dst: n.Fabric().Node(3).IPv4, Proto: model.UDP, DstPort: 5}
		h.Send(p, h.Ports()[0])
	})
	n.Run(2 * ms)
	for _, s := range []*Switch{near, far} {
		st := balance(t, s)
		if got := in.numbers[s.sw.ID]; !slices.IsSorted(got) || uint64(len(got)) != st.Delivered || st.Delivered < 1900 || len(st.Lost) != 0 {
			t.Errorf("%d reports arrived of %+v; want nearly 2,000 in order and none lost", len(got), st)
		}
	}
	var p packet.Packet
	if err := p.Parse(frame); err != nil || p.Outer.Key.DstPort != dta.Port || p.Outer.Key.Src != n.Fabric().Node(4).IPv4 || p.Outer.DSCP() != 16 {
		t.Errorf("the frame between the switches is %+v, %v; want DTA from switch 4, DSCP 16", p, err)
	}
	var r dta.Reader
	if err := r.Reset(frame[p.Outer.Payload:]); err != nil || r.Header().Reporter != 4 {
		t.Errorf("its content is %x: %v; want a datagram of switch 4", frame[p.Outer.Payload:], err)
	}
	if others != 1 {
		t.Errorf("the collector's own receiver saw %d packets; want the one that is no report", others)
	}
}

// TestInBandReportsWaitForAPause is why it matters how reports are carried: a
// collector's NIC that pauses the fabric also pauses what would say so.
func TestInBandReportsWaitForAPause(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg     InBandConfig
		arrives bool
	}{
		"in the paused class": {InBandConfig{Priority: 3}, false},
		"in another class":    {InBandConfig{Priority: 2}, true},
		"as control packets":  {InBandConfig{Priority: 3, Control: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			in, near, far := inBand(t, n, tc.cfg)
			if err := n.Inject(sim.Injection{At: 1_000_000, For: time.Millisecond, Fault: sim.Storm{Host: 3, Priority: 3}}); err != nil {
				t.Fatal(err)
			}
			n.Run(1900 * µs)
			for _, s := range []*Switch{near, far} {
				st := balance(t, s)
				if (len(in.numbers[s.sw.ID]) > 1800) != tc.arrives || (st.InFlight > 800) == tc.arrives {
					t.Errorf("under the pause %d arrived, %d in flight; want most of 1,900 to arrive: %v", len(in.numbers[s.sw.ID]), st.InFlight, tc.arrives)
				}
			}
			n.Run(3 * ms)
			for _, s := range []*Switch{near, far} {
				if st := balance(t, s); st.Delivered < 2900 || len(st.Lost) != 0 {
					t.Errorf("after the pause %+v; want all but the newest delivered, none lost", st)
				}
			}
		})
	}
}

// TestInBandLossesHaveReasons loses reports for each reason.
func TestInBandLossesHaveReasons(t *testing.T) {
	collector := func(n *sim.Network) model.Addr { return n.Fabric().Node(3).IPv4 }
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, n *sim.Network)
		want  LossReason // owner the far switch's reports
	}{
		"a cut link": {func(t *testing.T, n *sim.Network) {
			if err := n.Inject(sim.Injection{At: 1000, Fault: sim.LinkDown{Port: model.Port{Node: 4, Port: 3}}}); err != nil {
				t.Fatal(err)
			}
		}, "fabric: link-down"},
		"a lossy wire": {func(t *testing.T, n *sim.Network) {
			if err := n.Inject(sim.Injection{At: 1000, Fault: sim.Lossy{Port: model.Port{Node: 4, Port: 3}, Share: 0.5, Damaged: true}}); err != nil {
				t.Fatal(err)
			}
		}, "fabric: corrupt"},
		"no route at the switch": {func(t *testing.T, n *sim.Network) {
			if err := n.Switch(4).Table().SetDest(collector(n)); err != nil {
				t.Fatal(err)
			}
			n.Switch(4).TableChanged()
		}, Unroutable},
		"another host": {func(t *testing.T, n *sim.Network) {
			if err := n.Switch(5).Table().SetDest(collector(n), 1); err != nil {
				t.Fatal(err)
			}
			n.Switch(5).TableChanged()
		}, Misrouted},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			_, near, far := inBand(t, n, InBandConfig{Priority: 2})
			tc.spoil(t, n)
			n.Run(2 * ms)
			balance(t, near)
			if st := balance(t, far); st.Lost[tc.want] < 500 || len(st.Lost) != 1 || st.InFlight > 20 {
				t.Errorf("stats %+v; want losses of the one kind %q and hardly anything in flight", st, tc.want)
			}
		})
	}
}

// seen is an observer that was there first.
type seen struct {
	sim.NopObserver
	delivered, dropped int
}

func (s *seen) Delivered(engine.Time, *sim.Packet, *sim.Host)           { s.delivered++ }
func (s *seen) Dropped(engine.Time, *sim.Packet, *sim.Port, sim.Reason) { s.dropped++ }

func TestInBandPassesObservationsOn(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	inBand(t, n, InBandConfig{Priority: 2})
	o := &seen{}
	n.Observe(o)
	add(t, n, traffic.Flow{Src: 0, Dst: 2, Bytes: 100 * 1024, Transport: traffic.UDP, Start: 100_000})
	if err := n.Inject(sim.Injection{At: 200_000, Fault: sim.LinkDown{Port: model.Port{Node: 4, Port: 3}}}); err != nil {
		t.Fatal(err)
	}
	n.Run(1 * ms)
	if int64(o.delivered) != n.Counts.Delivered || o.dropped == 0 || int64(o.dropped) != n.Counts.Drops[sim.DropLinkDown] {
		t.Errorf("the first observer saw %d delivered, %d dropped; want %d, %d", o.delivered, o.dropped, n.Counts.Delivered, n.Counts.Drops[sim.DropLinkDown])
	}
}
