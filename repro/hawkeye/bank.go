package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// bank is the telemetry of one switch at several lengths of the epoch, each
// polled by several kinds of host, so that one run answers for all of them. A
// poll's number says which of the programs is meant.
type bank struct {
	programs []*epoch.Program // by variant: threshold × length; those of the first threshold keep telemetry
	keep     int              // how many do
	ask      *[]poll.Event    // of full polling, for all switches of the run
	asked    int              // of them
	frame    []byte
}

// remembered is how far back a switch can tell, at least: short epochs take more
// of them.
const remembered = time.Millisecond

// every is how often a switch looks whether full polling wants its state.
const every = 5 * time.Microsecond

// looked is the bank's own timer; the programs' are their variant and 1.
const looked inswitch.TimerID = 1 << 20

func newBank(cfg epoch.Config, lengths []time.Duration, thresholds int, dev inswitch.Device, ask *[]poll.Event) (*bank, error) {
	b := &bank{keep: len(lengths), ask: ask}
	for _, length := range lengths {
		cfg.EpochLength = length
		cfg.Epochs = max(2, int((remembered+length-1)/length))
		p, err := epoch.New(cfg, dev)
		if err != nil {
			return nil, err
		}
		b.programs = append(b.programs, p)
	}
	for i := range (thresholds - 1) * len(lengths) {
		b.programs = append(b.programs, b.programs[i%len(lengths)].ShareTelemetry())
	}
	return b, nil
}

// Stages are the programs'.
func (b *bank) Stages() inswitch.Stages { return b.programs[0].Stages() }

// Observe passes on.
func (b *bank) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	switch {
	case ev.Stage == inswitch.Ingress:
		if ev.Packet.EtherType == poll.EtherType {
			b.poll(ev, act)
		}
	case ev.Stage != inswitch.Timer:
		for _, p := range b.programs[:b.keep] {
			p.Observe(ev, act)
		}
	case ev.Timer == looked || ev.Timer == inswitch.StartTimer:
		for ; b.asked < len(*b.ask); b.asked++ {
			who := (*b.ask)[b.asked]
			v := b.variant(who)
			b.programs[v].RequestSnapshot(ev, act, who)
			mark(act, v)
		}
		act.SetTimer(every, looked)
	default:
		v := int(ev.Timer) - 1
		ev.Timer = 1
		b.programs[v].Observe(ev, act)
		mark(act, v)
	}
}

func (b *bank) variant(who poll.Event) int { return int(who.Number) % len(b.programs) }

// poll gives a poll to the program it is for.
func (b *bank) poll(ev *inswitch.Event, act *inswitch.Actions) {
	var in poll.Poll
	b.frame = ev.Packet.AppendFrame(b.frame[:0], packet.EthernetSize+poll.MaxSize)
	if len(b.frame) < packet.EthernetSize {
		return
	}
	if _, err := in.Parse(b.frame[packet.EthernetSize:]); err != nil {
		return
	}
	v := b.variant(in.Event)
	b.programs[v].Observe(ev, act)
	mark(act, v)
}

// mark makes the timers that a program asked for tell which one it was.
func mark(act *inswitch.Actions, variant int) {
	for i := range act.Timers {
		if t := &act.Timers[i]; t.Timer == 1 {
			t.Timer = inswitch.TimerID(variant + 1)
		}
	}
}
