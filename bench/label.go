package bench

import (
	"context"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	inlabel "github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

var labelSuite = Suite{
	Name:  "label",
	About: "cost of labelling a packet, compared with parsing it",
	Input: "100-byte frames, TCP in IPv4; ports whose interval has not elapsed, and ports that label every packet",
	run: func(ctx context.Context) ([]Result, error) {
		frame := tcpFrame(100)
		var p packet.Packet
		idle, err := newLabelled(frame, time.Hour)
		if err != nil {
			return nil, err
		}
		busy, err := newLabelled(frame, 1)
		if err != nil {
			return nil, err
		}
		ns, err := alternateRounds(ctx, func(n int) {
			for range n {
				if p.Parse(frame) != nil {
					panic("bench: weft rejects the frame")
				}
			}
		}, func(n int) {
			for i := range uint(n) {
				idle.observe(i)
			}
			if idle.act.Changes != 0 {
				panic("bench: a port that is not due labels")
			}
		}, func(n int) {
			for range n {
				busy.pass()
			}
		})
		if err != nil {
			return nil, err
		}
		return []Result{
			lowerIsBetter("decide not to label", ns[1], "ns", "parse the packet", ns[0], 1/0.3),
			lowerIsBetter("decide, and write the label", ns[2], "ns", "parse the packet", ns[0], 1.0/3),
		}, nil
	},
}

// ringSize is the number of packets in use: few enough for the L1 cache.
const ringSize = 16

// fan is the number of ports that packets go to.
const fan = 8

// labelledPort is a switch port with packets that pass again and again.
type labelledPort struct {
	program *inlabel.Program
	fresh   []byte              // the IP packet as it arrives
	header  [20]byte            // its header
	ring    [ringSize][256]byte // packets in use
	turn    uint
	view    inswitch.Packet
	events  [fan]inswitch.Event // one for each port
	act     inswitch.Actions
}

func newLabelled(frame []byte, interval time.Duration) (*labelledPort, error) {
	cfg := inlabel.DefaultConfig()
	cfg.Interval = interval
	prog, err := inlabel.New(cfg, inswitch.Device{
		ID: 1, MTU: 1500,
		Ports: slices.Repeat([]inswitch.Port{{Rate: 100 * model.Gbps}}, fan),
	})
	if err != nil {
		return nil, err
	}
	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		return nil, err
	}
	key := p.Outer.Key
	l := &labelledPort{program: prog, fresh: frame[packet.EthernetSize:]}
	l.header = [20]byte(l.fresh)
	for i := range l.ring {
		copy(l.ring[i][:], l.fresh)
	}
	l.view = inswitch.Packet{Key: &key, Outer: &key, Size: int32(len(frame)), Source: l}
	for i := range l.events {
		l.events[i] = inswitch.Event{Stage: inswitch.Dequeue, In: 1, Out: model.PortID(i + 1), Packet: &l.view}
		l.observe(uint(i)) // a port's first packet is labelled whatever the interval
		l.act.Reset()
	}
	return l, nil
}

// observe shows the packet to the program as the i-th. Successive packets go to
// different ports, as in a busy switch, 80 ns after the last of that port.
func (l *labelledPort) observe(i uint) {
	ev := &l.events[i%fan]
	ev.Now += 80
	l.program.Observe(ev, &l.act)
}

// pass has the packet labelled and writes the label. Packets are in a ring, and
// each gets a fresh header long before its turn: one that is written and moved at
// once makes the CPU wait, which packets that arrive over a wire do not. The bytes
// after the header are those that the last label left; they are moved and not
// read.
func (l *labelledPort) pass() {
	l.turn++
	*(*[20]byte)(l.ring[(l.turn+ringSize/2)%ringSize][:]) = l.header
	l.observe(l.turn)
	if l.act.Changes == 0 {
		panic("bench: a port that is due does not label")
	}
	if _, err := label.Push(l.ring[l.turn%ringSize][:len(l.fresh)], &l.act.LabelItem, l.act.LabelParams); err != nil {
		panic("bench: " + err.Error())
	}
	l.act.Reset()
}

// The rest of a packet's Source. Push itself checks what CanPushLabel would.
func (l *labelledPort) Seq() uint32                        { return 0 }
func (l *labelledPort) Labels() label.Block                { return label.Block{} }
func (l *labelledPort) CanPushLabel(label.Params) error    { return nil }
func (l *labelledPort) AppendFrame(b []byte, _ int) []byte { return append(b, l.fresh...) }
