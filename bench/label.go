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
	About: "what labelling costs a packet, beside what parsing it costs",
	Input: "100-byte frames, TCP in IPv4; ports whose interval is not over, and ports that label every packet",
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
					panic("bench: weft refuses the frame")
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

// ringSize is how many packets are at work: few enough for the nearest cache.
const ringSize = 16

// fan is over how many ports packets go.
const fan = 8

// labelledPort is a switch port with one packet that passes again and again.
type labelledPort struct {
	program *inlabel.Program
	fresh   []byte              // the IP packet as it comes
	header  [20]byte            // of it
	ring    [ringSize][256]byte // at work
	turn    uint
	view    inswitch.Packet
	events  [fan]inswitch.Event // one for each port
	act     inswitch.Actions
}

func newLabelled(frame []byte, interval time.Duration) (*labelledPort, error) {
	cfg := inlabel.DefaultConfig()
	cfg.Interval = interval
	prog, err := inlabel.New(cfg, inswitch.Device{ID: 1, MTU: 1500, Ports: slices.Repeat([]inswitch.Port{{Rate: 100 * model.Gbps}}, fan)})
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

// observe shows the packet to the program as the i-th. One after the other goes
// to another port, as in a switch at work, 80 ns after the last of that port.
func (l *labelledPort) observe(i uint) {
	ev := &l.events[i%fan]
	ev.Now += 80
	l.program.Observe(ev, &l.act)
}

// pass has the packet labelled and carries the label out. Packets lie in a ring,
// and each gets a fresh header long before its turn: one that is written and moved
// at once makes the processor wait, as packets that came in over a wire do not.
// What is behind the header is whatever the last label left there; it is moved and
// not read.
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

// The rest of a packet's Source. Push itself checks what MayLabel would.
func (l *labelledPort) Seq() uint32                        { return 0 }
func (l *labelledPort) Labels() label.Block                { return label.Block{} }
func (l *labelledPort) MayLabel(label.Params) error        { return nil }
func (l *labelledPort) AppendFrame(b []byte, _ int) []byte { return append(b, l.fresh...) }
