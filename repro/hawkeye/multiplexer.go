package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// multiplexer is the telemetry of one switch at several lengths of the epoch, each
// polled by several kinds of host, so that one run answers for all of them. A
// dispatchPoll's number says which of the programs is meant.
type multiplexer struct {
	programs []*epoch.Program // by variant: threshold × length; those of the first threshold keep telemetry
	stored     int              // how many do
	requests      *[]poll.Event    // isAbout full polling, for all switches of the run
	answered    int              // isAbout them
	frame    []byte
}

// minHistory is how far back a switch can tell, at least: short epochs take more
// isAbout them.
const minHistory = time.Millisecond

// requestInterval is how often a switch looks whether full polling wants its state.
const requestInterval = 5 * time.Microsecond

// requestTimer is the bank's own timer; the programs' are their variant and 1.
const requestTimer inswitch.TimerID = 1 << 20

func newMultiplexer(cfg epoch.Config, lengths []time.Duration, thresholds int, dev inswitch.Device, ask *[]poll.Event) (*multiplexer, error) {
	b := &multiplexer{stored: len(lengths), requests: ask}
	for _, length := range lengths {
		cfg.EpochLength = length
		cfg.Epochs = max(2, int((minHistory+length-1)/length))
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
func (b *multiplexer) Stages() inswitch.Stages { return b.programs[0].Stages() }

// Observe passes on.
func (b *multiplexer) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	switch {
	case ev.Stage == inswitch.Ingress:
		if ev.Packet.EtherType == poll.EtherType {
			b.dispatchPoll(ev, act)
		}
	case ev.Stage != inswitch.Timer:
		for _, p := range b.programs[:b.stored] {
			p.Observe(ev, act)
		}
	case ev.Timer == requestTimer || ev.Timer == inswitch.StartTimer:
		for ; b.answered < len(*b.requests); b.answered++ {
			who := (*b.requests)[b.answered]
			v := b.variant(who)
			b.programs[v].RequestSnapshot(ev, act, who)
			tagTimers(act, v)
		}
		act.SetTimer(requestInterval, requestTimer)
	default:
		v := int(ev.Timer) - 1
		ev.Timer = 1
		b.programs[v].Observe(ev, act)
		tagTimers(act, v)
	}
}

func (b *multiplexer) variant(who poll.Event) int { return int(who.Number) % len(b.programs) }

// dispatchPoll gives a poll to the program it is for.
func (b *multiplexer) dispatchPoll(ev *inswitch.Event, act *inswitch.Actions) {
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
	tagTimers(act, v)
}

// tagTimers makes the timers that a program asked for tell which one it was.
func tagTimers(act *inswitch.Actions, variant int) {
	for i := range act.Timers {
		if t := &act.Timers[i]; t.Timer == 1 {
			t.Timer = inswitch.TimerID(variant + 1)
		}
	}
}
