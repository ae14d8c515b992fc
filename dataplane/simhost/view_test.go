package simhost

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/pfc"
	"github.com/weft-telemetry/weft/wire/roce"
)

func TestStagesAreNumberedAlike(t *testing.T) {
	for _, pair := range []struct {
		program inswitch.Stage
		sim     sim.Stage
	}{
		{inswitch.Ingress, sim.StageIngress},
		{inswitch.Routed, sim.StageRouted},
		{inswitch.Enqueue, sim.StageEnqueue},
		{inswitch.Dequeue, sim.StageDequeue},
		{inswitch.PFC, sim.StagePFC},
		{inswitch.Timer, sim.StageTimer},
	} {
		if uint8(pair.program) != uint8(pair.sim) {
			t.Errorf("stage %d of inswitch is stage %d of sim; want the same number", pair.program, pair.sim)
		}
	}
}

// viewed is what a view and its bytes have in common.
type viewed struct {
	Key, Outer          model.FlowKey
	Size                int32
	EtherType, IPID     uint16
	TTL, DSCP, ECN, TCP uint8
	InnerTTL            uint8
	Seq                 uint32
	Kind                inswitch.Kind
}

// ofBytes fills the view as a host of raw bytes would.
func ofBytes(t *testing.T, frame []byte) (v viewed) {
	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		t.Fatalf("Parse(%x) = %v", frame, err)
	}
	in := p.Innermost()
	v = viewed{
		Key: in.Key, Outer: p.Outer.Key, Size: int32(len(frame)), EtherType: p.EtherType, IPID: uint16(in.ID),
		TTL: p.Outer.TTL, InnerTTL: in.TTL, DSCP: p.Outer.DSCP(), ECN: p.Outer.ECN(), TCP: uint8(in.TCPFlags), Seq: in.Seq,
	}
	opcode, body := roce.Opcode(in.Type), frame[in.Payload:]
	if in.Key.SrcPort == roce.Port && in.Key.DstPort != roce.Port {
		// The simulator's answers go back to the port the data came from.
		var h roce.BTH
		n, _ := h.Parse(body)
		opcode, body, v.Seq = h.Opcode, body[n:], uint32(h.PSN)
	} else if !in.Flags.Has(packet.RoCE) {
		return v
	}
	switch opcode {
	case roce.Acknowledge:
		var a roce.AETH
		_, _ = a.Parse(body)
		if v.Kind = inswitch.Ack; a.Syndrome.IsNak() {
			v.Kind = inswitch.Nak
		}
	case roce.CNP:
		v.Kind = inswitch.CNP
	default:
		v.Kind = inswitch.Data
	}
	return v
}

// TestViewIsWhatTheWireShows compares the view of every packet at every stage
// with the bytes of its frame, read by the parser of a switch that works on
// bytes.
func TestViewIsWhatTheWireShows(t *testing.T) {
	n := fatTree(t, tight())
	add(t, n, busy()...)
	kinds := map[string]int{}
	var frame []byte
	check := at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		p := ev.Packet
		frame = p.AppendFrame(frame[:0], 0)
		got := viewed{
			Key: *p.Key, Outer: *p.Outer, Size: p.Size, EtherType: p.EtherType, IPID: p.IPID,
			TTL: p.TTL, InnerTTL: p.InnerTTL, DSCP: p.DSCP, ECN: p.ECN, TCP: p.TCPFlags, Seq: p.Seq(), Kind: p.Kind,
		}
		want := ofBytes(t, frame)
		if got.Kind == inswitch.CNP {
			want.Size = got.Size // the simulator's CNPs have the size of other answers
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("stage %d (-bytes +view):\n%s", ev.Stage, diff)
		}
		kinds[fmt.Sprintf("%v kind %d v6 %v", p.Key.Proto, p.Kind, p.Key.V6)]++
		if p.Key != p.Outer {
			kinds[fmt.Sprintf("tunnel at stage %d, TTL %d over %d", ev.Stage, p.TTL, p.InnerTTL)]++
		}
		if ev.Control {
			kinds[fmt.Sprintf("control at stage %d", ev.Stage)]++
		}
		if cut := p.AppendFrame(nil, 40); !bytes.Equal(cut, frame[:40]) {
			t.Fatalf("AppendFrame cut to 40 = %x; want %x", cut, frame[:40])
		}
	}, inswitch.Ingress, inswitch.Routed, inswitch.Enqueue, inswitch.Dequeue)
	attach(t, n, n.Fabric().Switches()[0], DefaultConfig(), check)
	walk(n, 0, 15, "leaf0", "tor0", "leaf1")
	n.Run(5 * ms)
	for _, want := range []string{
		"udp kind 0 v6 false", "udp kind 1 v6 false", "udp kind 1 v6 true",
		"udp kind 2 v6 false", "udp kind 2 v6 true", "tcp kind 0 v6 false",
		// To leaf0, and back to tor0, which takes a header off that came with
		// 63 and sends the one beneath on, less one.
		"tunnel at stage 0, TTL 64 over 9", "tunnel at stage 3, TTL 63 over 9", "tunnel at stage 0, TTL 63 over 9",
		"control at stage 0", "control at stage 3",
	} {
		if kinds[want] == 0 {
			t.Errorf("no packet of %q among %v; want all sorts", want, kinds)
		}
	}
}

// walk sends a datagram along switches by nested headers.
func walk(n *sim.Network, from, to model.NodeID, along ...string) {
	f, h := n.Fabric(), n.Host(from)
	p := h.NewPacket()
	p.Kind, p.TTL, p.DSCP, p.Payload, p.Size = sim.KindUDP, 9, 5, 100, 14+20+8+100
	p.Key = model.FlowKey{Src: f.Node(from).IPv4, Dst: f.Node(to).IPv4, SrcPort: 7, DstPort: 7, Proto: model.UDP}
	for _, name := range slices.Backward(along) {
		id, _ := f.ByName(name)
		h.Encapsulate(p, model.FlowKey{Src: f.Node(from).IPv4, Dst: f.Node(id).IPv4})
	}
	h.Send(p, h.Ports()[0])
}

func TestPauseFramesAreShown(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	if err := n.Inject(sim.Injection{At: 1000, For: 10 * time.Microsecond, Fault: sim.Storm{Host: 2, Priority: 3}}); err != nil {
		t.Fatal(err)
	}
	var pauses, resumes int
	s := attach(t, n, 5, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
		d, ok := ev.Pause.ForClass(3)
		if !ok || ev.In != 1 || ev.Out != 0 || ev.Packet.EtherType != pfc.EtherType {
			t.Errorf("pause at port %d, out %d, EtherType %x, class 3 %v; want port 1, none, 8808, named", ev.In, ev.Out, ev.Packet.EtherType, ok)
		}
		var f pfc.Frame
		if _, err := f.Parse(ev.Packet.AppendFrame(nil, 0)); err != nil || f.Enable != 1<<3 || (f.Times[3] == 0) != (d == 0) {
			t.Errorf("the frame of a pause of %v = %+v, %v; want class 3", d, f, err)
		}
		if d > 0 {
			pauses++
		} else {
			resumes++
		}
		act.Drop() // cannot be: the neighbour's wish is obeyed
		act.SetDSCP(1)
		act.Clone(inswitch.Clone{Ports: []model.PortID{2}})
	}, inswitch.PFC))
	paused := false
	n.At(5*µs, func() { paused = n.Port(model.Port{Node: 5, Port: 1}).Paused(3) })
	n.Run(100 * µs)
	if pauses == 0 || resumes != 1 || !paused {
		t.Errorf("%d pauses and %d resumes seen, port paused %v; want some, 1, true", pauses, resumes, paused)
	}
	if got, want := s.Stats().Refused[NoPacket], uint64(3*(pauses+resumes)); got != want {
		t.Errorf("%d actions refused; want %d", got, want)
	}
}

func TestSwitchAnswersQuestions(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	add(
		t, n,
		traffic.Flow{Src: 0, Dst: 2, Bytes: 100 * 1024, Transport: traffic.UDP, Start: 1000},
		traffic.Flow{Src: 1, Dst: 2, Bytes: 100 * 1024, Transport: traffic.UDP, Start: 1000},
	)
	asked := 0
	attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		asked++
		if out, ok := ev.Switch.Route(ev.Packet.Key); !ok || out != ev.Out {
			t.Fatalf("Route(%v) = %d, %v; want %d, true: the packet's own path", ev.Packet.Key, out, ok, ev.Out)
		}
		if got := ev.Switch.Queue(ev.Out, ev.Priority); got != ev.Queue {
			t.Fatalf("Queue(%d, %d) = %+v; want %+v", ev.Out, ev.Priority, got, ev.Queue)
		}
		if got := ev.Switch.Queue(99, 0); got != (inswitch.Queue{}) {
			t.Fatalf("Queue of a port that is not there = %+v; want an empty one", got)
		}
		nowhere := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.UDP}
		if out, ok := ev.Switch.Route(&nowhere); ok {
			t.Fatalf("Route(%v) = %d, true; want no route", nowhere, out)
		}
	}, inswitch.Enqueue))
	n.Run(100 * µs)
	if asked != 200 {
		t.Errorf("asked %d times; want 200", asked)
	}
}

func TestDescribe(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	d := Describe(n, 5, 0)
	want := inswitch.Device{
		ID: 5, IPv4: n.Fabric().Node(5).IPv4, IPv6: n.Fabric().Node(5).IPv6,
		MTU: 1024 + 40 + 8 + 12 + 16 + 4 + 164, Buffer: sim.DefaultConfig().Buffer,
		Ports: []inswitch.Port{
			{Rate: 100 * model.Gbps, FacesHost: true}, {Rate: 100 * model.Gbps, FacesHost: true}, {Rate: 100 * model.Gbps},
		},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("Describe (-want +got):\n%s", diff)
	}
	cfg := sim.DefaultConfig()
	cfg.Xoff, cfg.Xon = 64*model.KiB, 32*model.KiB
	if d := Describe(dumbbell(t, cfg), 5, 0); d.Xoff != cfg.Xoff || d.Xon != cfg.Xon {
		t.Errorf("Describe: Xoff %v, Xon %v; want %v, %v", d.Xoff, d.Xon, cfg.Xoff, cfg.Xon)
	}
}

func TestTimersFollowTheSwitchesClock(t *testing.T) {
	for name, clock := range map[string]sim.Clock{
		"true":   {},
		"ahead":  {Offset: 300 * time.Microsecond},
		"fast":   {Drift: 1e-3},
		"slow":   {Offset: -time.Millisecond, Drift: -1e-3},
		"slower": {Drift: -0.25},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			n.SetClock(4, clock)
			var start model.Time
			var fired []time.Duration
			attach(t, n, 4, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
				if ev.Timer == inswitch.StartTimer {
					start = ev.Now
				} else {
					fired = append(fired, ev.Now.Sub(start))
				}
				act.SetTimer(10*time.Microsecond, ev.Timer+1)
			}, inswitch.Timer))
			n.Run(40 * ms)
			perfect := float64(40*time.Millisecond) * (1 + clock.Drift) / float64(10*time.Microsecond)
			if got := float64(len(fired)); got < perfect-2 || got > perfect+2 {
				t.Errorf("%v timers in 40 ms of the run; want about %v", got, perfect)
			}
			for i, d := range fired {
				if want := time.Duration(i+1) * 10 * time.Microsecond; d < want || d > want+time.Duration(i+1) {
					t.Fatalf("timer %d fired %v after the start; want %v, at most a nanosecond late each", i+1, d, want)
				}
			}
		})
	}
}

// TestBypassingPacketsAreNotQueued compares what programs see at Enqueue with
// Dequeue: a packet that bypasses the queue is sent at that instant and leaves an
// empty queue, others are seen again later.
func TestBypassingPacketsAreNotQueued(t *testing.T) {
	n := fatTree(t, tight())
	add(t, n, busy()...)
	var passing int32 // the size of the packet that was to pass, else 0
	passed, waited := 0, 0
	attach(t, n, n.Fabric().Switches()[0], DefaultConfig(), at(func(ev *inswitch.Event, _ *inswitch.Actions) {
		size := ev.Packet.Size
		switch {
		case ev.BypassesQueue && (ev.Queue != inswitch.Queue{} || ev.Queue != ev.Switch.Queue(ev.Out, ev.Priority)):
			t.Fatalf("stage %d: a packet passes a queue of %+v, in truth %+v; want an empty one", ev.Stage, ev.Queue, ev.Switch.Queue(ev.Out, ev.Priority))
		case passing != 0 && (ev.Stage != inswitch.Dequeue || !ev.BypassesQueue || size != passing || ev.Latency != 0 || ev.DepthAtEnqueue != 0):
			t.Fatalf("after a packet of %d bytes that bypasses the queue: %+v of %d bytes; want the same at Dequeue", passing, ev, size)
		case ev.Stage == inswitch.Dequeue && ev.BypassesQueue:
			passing, passed = 0, passed+1
		case ev.Stage == inswitch.Dequeue:
			waited++
		case ev.BypassesQueue:
			passing = size
		}
	}, inswitch.Enqueue, inswitch.Dequeue))
	n.Run(5 * ms)
	if passed < 100 || waited < 100 {
		t.Errorf("%d packets passed, %d waited; want many of both", passed, waited)
	}
}
