package bench

import (
	"context"
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
	Input: "100-byte frames, TCP in IPv4; a port whose interval is not over, and one that labels every packet",
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
		ns, err := race(ctx, func(n int) {
			for range n {
				if p.Parse(frame) != nil {
					panic("bench: weft refuses the frame")
				}
			}
		}, func(n int) {
			for range n {
				idle.pass()
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
			less("decide not to label", ns[1], "ns", "parse the packet", ns[0], 1/0.3),
			less("decide, and write the label", ns[2], "ns", "parse the packet", ns[0], 1.0/3),
		}, nil
	},
}

// labelled is a switch port with one packet that passes again and again.
type labelled struct {
	program *inlabel.Program
	fresh   []byte // the IP packet as it comes
	ip      []byte // at work
	view    inswitch.Packet
	ev      inswitch.Event
	act     inswitch.Actions
}

func newLabelled(frame []byte, interval time.Duration) (*labelled, error) {
	cfg := inlabel.DefaultConfig()
	cfg.Interval = interval
	prog, err := inlabel.New(cfg, inswitch.Device{ID: 1, MTU: 1500, Ports: []inswitch.Port{{Rate: model.Gbps}, {Rate: model.Gbps}}})
	if err != nil {
		return nil, err
	}
	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		return nil, err
	}
	key := p.Outer.Key
	l := &labelled{program: prog, fresh: frame[packet.EthernetSize:], ip: make([]byte, 0, 2048)}
	l.view = inswitch.Packet{Key: &key, Outer: &key, Size: int32(len(frame)), Source: l}
	l.ev = inswitch.Event{Stage: inswitch.Dequeue, In: 1, Out: 2, Packet: &l.view}
	return l, nil
}

// pass shows the packet to the program and carries its label out.
func (l *labelled) pass() {
	l.ev.Now += 10
	l.program.Observe(&l.ev, &l.act)
	if l.act.Changes == 0 {
		return
	}
	l.ip = append(l.ip[:0], l.fresh...)
	if _, err := label.Push(l.ip, &l.act.Item, l.act.How); err != nil {
		panic("bench: " + err.Error())
	}
	l.act.Reset()
}

// The rest of a packet's Source. Push itself checks what MayLabel would.
func (l *labelled) Seq() uint32                        { return 0 }
func (l *labelled) Labels() label.Block                { return label.Block{} }
func (l *labelled) MayLabel(label.Params) error        { return nil }
func (l *labelled) AppendFrame(b []byte, _ int) []byte { return append(b, l.fresh...) }
