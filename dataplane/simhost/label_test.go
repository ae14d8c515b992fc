package simhost

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// labeller labels every packet it can. The last hop takes the labels off and
// reports them, oldest last.
type labeller struct {
	dev     inswitch.Device
	how     label.Params
	refused int
}

func (l *labeller) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Dequeue) }

func (l *labeller) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	if !l.dev.Port(ev.Out).FacesHost {
		if ev.Packet.CanPushLabel(l.how) != nil {
			l.refused++
			return
		}
		*act.PushLabel(l.how) = label.Item{
			Switch: l.dev.ID, Ingress: ev.In, Egress: ev.Out, Time: ev.Now, Latency: ev.Latency,
			EnqueueDepth: ev.DepthAtEnqueue, DequeueDepth: ev.Queue.Bytes, Queue: uint8(ev.Priority),
		}
		return
	}
	if k := ev.Packet.Labels(); k.Len() > 0 {
		act.Report(dta.Report{Primitive: dta.Append, Data: k.AppendTo(nil)})
		act.StripLabels()
	}
}

// TestLabelsComeOffAtTheLastHop labels packets of every transport at every hop:
// on the path they grow by what wire/label says, at the end they are as sent,
// and the report has the path.
func TestLabelsComeOffAtTheLastHop(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Buffer = 64 * model.MB // no pause: what is labelled is all that happens
	n := fatTree(t, cfg)
	add(
		t, n,
		traffic.Flow{Src: 0, Dst: 15, Bytes: 50_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: 1, Dst: 14, Bytes: 50_000, Priority: 3, Start: 1000, V6: true},
		traffic.Flow{Src: 2, Dst: 13, Bytes: 50_000, Priority: 1, Start: 1000, Transport: traffic.TCP},
		traffic.Flow{Src: 3, Dst: 12, Bytes: 50_000, Start: 1000, Transport: traffic.UDP},
		traffic.Flow{Src: 4, Dst: 5, Bytes: 50_000, Priority: 3, Start: 1000}, // one switch
	)
	paths := map[string]int{}
	m, err := NewManagement(n, ManagementConfig{}, func(_ model.Time, from model.NodeID, datagram []byte) {
		var r dta.Reader
		var rep dta.Report
		for _ = r.Reset(datagram); r.Next(&rep); {
			var k label.Block
			if _, err := k.Parse(rep.Data); err != nil {
				t.Fatalf("report %x: %v", rep.Data, err)
			}
			path := ""
			for i := range k.Len() {
				it := k.Item(k.Len() - 1 - i)
				path += fmt.Sprintf("%s:%d > ", n.Fabric().Node(it.Switch).Name, it.Egress)
				if peer := n.Port(model.Port{Node: it.Switch, Port: it.Egress}).Peer().Node; i < k.Len()-1 && peer != k.Item(k.Len()-2-i).Switch {
					t.Errorf("label %d of a packet at %d leads to node %d; want to the next label's switch", i, it.Switch, peer)
				}
			}
			paths[path+n.Fabric().Node(from).Name]++
		}
		if r.Err() != nil {
			t.Errorf("datagram %x: %v", datagram, r.Err())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	hostCfg := DefaultConfig()
	hostCfg.Carrier = m
	var hosted []*Switch
	for _, id := range n.Fabric().Switches() {
		hosted = append(hosted, attach(t, n, id, hostCfg, &labeller{dev: Describe(n, id, 0)}))
		for _, p := range n.Switch(id).Ports() {
			toHost := p.Peer().Host() != nil
			p.SetTap(func(_ engine.Time, pkt *sim.Packet) {
				labels := 0
				if pkt.Extra != nil {
					labels = len(pkt.Extra.Labels)
				}
				if int(pkt.Size) != bareSize(pkt)+labels || toHost && labels != 0 || !toHost && labels == 0 && !pkt.Control {
					t.Errorf("a packet of %d bytes and %d of labels leaves port %v of node %d", pkt.Size, labels, p.ID, p.Node)
				}
			})
		}
	}
	n.Run(20 * ms)
	for _, r := range n.Records() {
		if !r.Finished || r.Retransmitted != 0 {
			t.Errorf("flow %d finished %v, retransmitted %d; want true, 0", r.ID, r.Finished, r.Retransmitted)
		}
	}
	total := uint64(0)
	for _, s := range hosted {
		st := s.Stats()
		total += st.Delivered
		if st.Reports != st.Delivered || len(st.Refused) != 0 {
			t.Errorf("stats %+v; want all reports delivered, nothing refused", st)
		}
	}
	hops := map[int]bool{}
	for path := range paths {
		count := 0
		for _, c := range path {
			if c == '>' {
				count++
			}
		}
		hops[count] = true
	}
	if total == 0 || !cmp.Equal(hops, map[int]bool{4: true}) {
		t.Errorf("%d reports of paths %v; want some, of four labels each", total, paths)
	}
}

// bareSize is the wire size of an unlabelled packet by its headers.
func bareSize(p *sim.Packet) int {
	size := 14 + int(keyBytes(&p.Key))
	switch p.Kind {
	case sim.KindData:
		size += 16 + int(p.Payload+3)&^3
		if p.Seq == 0 {
			size += 16
		}
	case sim.KindAck, sim.KindNack, sim.KindCNP:
		size += 20
	case sim.KindTCP:
		size += 20 + int(p.Payload)
	default:
		size += int(p.Payload)
	}
	return max(size, 60)
}

// TestLabelsAreRefusedAsOnTheWire asks for labels that label.Push would refuse.
func TestLabelsAreRefusedAsOnTheWire(t *testing.T) {
	for name, tc := range map[string]struct {
		mtu    int
		how    label.Params
		pushes int
		labels uint8
		want   error
	}{
		"two labels":           {0, label.Params{}, 2, 2, nil},
		"full":                 {0, label.Params{MaxHop: 2}, 3, 2, label.ErrFull},
		"specific":             {0, label.Params{Specific: true}, 2, 2, nil},
		"too many hops":        {0, label.Params{MaxHop: 33}, 1, 0, label.ErrBlock},
		"the fabric's MTU":     {1052 + 36, label.Params{}, 2, 1, label.ErrTooLong},
		"just the fabric's":    {1052 + 68, label.Params{}, 2, 2, nil},
		"the program's MTU":    {0, label.Params{MTU: 1052 + 35}, 1, 0, label.ErrTooLong},
		"just the program's":   {0, label.Params{MTU: 1052 + 36}, 1, 1, nil},
		"the fabric's remains": {1052 + 35, label.Params{MTU: 9000}, 1, 0, label.ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			add(t, n, traffic.Flow{Src: 0, Dst: 2, Bytes: 1024, Transport: traffic.UDP, Start: 1000})
			var programs []inswitch.Program
			var asked error
			for range tc.pushes {
				programs = append(programs, at(func(ev *inswitch.Event, act *inswitch.Actions) {
					asked = ev.Packet.CanPushLabel(tc.how)
					act.PushLabel(tc.how).Switch = 4
				}, inswitch.Dequeue))
			}
			seen := false
			programs = append(programs, at(func(ev *inswitch.Event, _ *inswitch.Actions) {
				seen = true
				if ev.Packet.LabelCount != tc.labels || ev.Packet.UnlabeledSize() != 1066 {
					t.Errorf("%d labels, %d bytes without; want %d, 1066", ev.Packet.LabelCount, ev.Packet.UnlabeledSize(), tc.labels)
				}
				if k := ev.Packet.Labels(); k.Len() != int(tc.labels) || k.Len() > 0 && (k.NextHeader != model.UDP || k.Specific() != tc.how.Specific) {
					t.Errorf("labels %+v; want %d after UDP, specific %v", k, tc.labels, tc.how.Specific)
				}
			}, inswitch.Dequeue))
			s := attach(t, n, 4, Config{MTU: tc.mtu}, programs...)
			n.Run(1 * ms)
			if asked != tc.want || !seen {
				t.Errorf("CanPushLabel before the last push = %v, packet seen %v; want %v, true", asked, seen, tc.want)
			}
			refused := map[Refusal]uint64{}
			if tc.want != nil {
				refused[Refusal(tc.want.Error())] = 1
			}
			if diff := cmp.Diff(refused, s.Stats().Refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabellingAllocatesNothing holds for programs that act on every packet,
// too.
func TestLabellingAllocatesNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	n := fatTree(t, sim.DefaultConfig())
	addSteady(t, n)
	for _, id := range n.Fabric().Switches() {
		dev := Describe(n, id, 0)
		attach(t, n, id, DefaultConfig(), at(func(ev *inswitch.Event, act *inswitch.Actions) {
			switch {
			case dev.Port(ev.Out).FacesHost:
				act.StripLabels()
			case ev.Packet.CanPushLabel(label.Params{}) == nil:
				act.PushLabel(label.Params{}).Switch = dev.ID
			}
		}, inswitch.Dequeue))
	}
	n.Run(500 * µs)
	if allocs := testing.AllocsPerRun(20, func() { n.Run(n.Now() + 10*µs) }); allocs != 0 {
		t.Errorf("10 µs of the run allocate %v times; want 0", allocs)
	}
}
