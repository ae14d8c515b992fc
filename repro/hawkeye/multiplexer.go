package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

// multiplexer is the telemetry of one switch with several epoch lengths, each
// polled by several kinds of host, so that one run serves all of them. A poll's
// number selects the program.
type multiplexer struct {
	programs []*epoch.Program // by variant: threshold × length; those of the first threshold store telemetry
	stored   int              // how many do
	requests *[]poll.Event    // full polls, of all switches of the run
	answered int              // of them
	frame    []byte

	onPathOnly bool // discard polls that follow pauses off the victim's path
}

// minHistory is how much history a switch keeps, at least: with short epochs it
// takes more of them.
const minHistory = time.Millisecond

// requestInterval is how often a switch checks for full polls.
const requestInterval = 5 * time.Microsecond

// requestTimer is the multiplexer's own timer; those of the programs are 1 +
// their variant.
const requestTimer inswitch.TimerID = 1 << 20

func newMultiplexer(
	cfg epoch.Config, lengths []time.Duration, thresholds int, dev inswitch.Device, requests *[]poll.Event,
) (*multiplexer, error) {
	m := &multiplexer{stored: len(lengths), requests: requests}
	for _, length := range lengths {
		cfg.EpochLength = length
		cfg.Epochs = max(2, int((minHistory+length-1)/length))
		p, err := epoch.New(cfg, dev)
		if err != nil {
			return nil, err
		}
		m.programs = append(m.programs, p)
	}
	for i := range (thresholds - 1) * len(lengths) {
		m.programs = append(m.programs, m.programs[i%len(lengths)].ShareTelemetry())
	}
	return m, nil
}

// Stages returns those of the programs.
func (m *multiplexer) Stages() inswitch.Stages { return m.programs[0].Stages() }

// Observe passes events on to the programs.
func (m *multiplexer) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	switch {
	case ev.Stage == inswitch.Ingress:
		if ev.Packet.EtherType == poll.EtherType {
			m.dispatchPoll(ev, act)
		}
	case ev.Stage != inswitch.Timer:
		for _, p := range m.programs[:m.stored] {
			p.Observe(ev, act)
		}
	case ev.Timer == requestTimer || ev.Timer == inswitch.StartTimer:
		for ; m.answered < len(*m.requests); m.answered++ {
			who := (*m.requests)[m.answered]
			v, before := m.variant(who), len(act.Timers)
			m.programs[v].RequestSnapshot(ev, act, who)
			tagTimers(act.Timers[before:], v)
		}
		act.SetTimer(requestInterval, requestTimer)
	default:
		v, before := int(ev.Timer)-1, len(act.Timers)
		ev.Timer = 1
		m.programs[v].Observe(ev, act)
		tagTimers(act.Timers[before:], v)
	}
}

func (m *multiplexer) variant(who poll.Event) int { return int(who.Number) % len(m.programs) }

// dispatchPoll passes a poll to the program it is for.
func (m *multiplexer) dispatchPoll(ev *inswitch.Event, act *inswitch.Actions) {
	var in poll.Poll
	m.frame = ev.Packet.AppendFrame(m.frame[:0], packet.EthernetSize+poll.MaxSize)
	if len(m.frame) < packet.EthernetSize {
		return
	}
	if _, err := in.Parse(m.frame[packet.EthernetSize:]); err != nil {
		return
	}
	if m.onPathOnly && in.Flag&poll.Victim == 0 {
		act.Consume()
		return
	}
	v, before := m.variant(in.Event), len(act.Timers)
	m.programs[v].Observe(ev, act)
	tagTimers(act.Timers[before:], v)
}

// tagTimers makes the timers that a program requested say which one it was.
func tagTimers(timers []inswitch.TimerRequest, variant int) {
	for i := range timers {
		if t := &timers[i]; t.Timer == 1 {
			t.Timer = inswitch.TimerID(variant + 1)
		}
	}
}
