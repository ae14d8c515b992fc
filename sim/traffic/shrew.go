package traffic

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Shrew is a low-rate attack, as LoRDMA mounts it on RDMA fabrics: a few
// senders burst at line rate, all at once and so briefly that their average
// rate looks harmless, and again before the victims' congestion control has
// recovered. All bursts of a sender share one 5-tuple, as messages of one queue
// pair do, and each waits for the one before. Every round of bursts is a Group.
type Shrew struct {
	Class
	Senders  []model.NodeID
	Receiver model.NodeID
	Burst    time.Duration // of the sender's link, or of Class.Rate where it is set
	Period   time.Duration // from burst to burst
	Rounds   int
	Start    model.Time
}

// DefaultShrew bursts for 50 µs in every millisecond, 5 % of the link on
// average, ten times, without congestion control: 625 KB per burst and sender
// at 100 Gb/s, enough for two senders to make a switch pause, and a period
// below the milliseconds that DCQCN takes to recover its rate. Senders and
// Receiver must be set.
func DefaultShrew() Shrew {
	c := DefaultClass()
	c.NoCC = true
	return Shrew{Class: c, Burst: 50 * time.Microsecond, Period: time.Millisecond, Rounds: 10}
}

func (g Shrew) kind() string { return "shrew" }

func (g Shrew) flows(e *env) ([]Flow, error) {
	senders, err := g.check(e)
	if err != nil {
		return nil, err
	}
	out := make([]Flow, 0, g.Rounds*len(senders))
	for round := range g.Rounds {
		at := g.Start.Add(time.Duration(round) * g.Period)
		for _, from := range senders {
			size, err := g.size(from)
			if err != nil {
				return nil, err
			}
			f := g.flow(from.ID, g.Receiver, at, size)
			f.SrcPort, f.Group = e.port, round+1
			if round > 0 {
				f.After = []int{len(out) - len(senders)}
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// size returns what a sender's link, or the class's rate if that is less,
// carries during a burst.
func (g Shrew) size(from Host) (model.Bytes, error) {
	rate := from.Rate
	if rate <= 0 {
		return 0, fmt.Errorf("senders: host %d has no link", from.ID)
	}
	if g.Rate > 0 {
		rate = min(rate, g.Rate)
	}
	size := float64(rate) / 8 * g.Burst.Seconds()
	if !(size >= 1 && size <= float64(MaxBytes)) {
		return 0, fmt.Errorf("burst %v is %.0f bytes of %v, want from 1 to %d", g.Burst, size, rate, MaxBytes)
	}
	return model.Bytes(size), nil
}

func (g Shrew) check(e *env) ([]Host, error) {
	if err := g.Class.check(); err != nil {
		return nil, err
	}
	if err := checkStart(g.Start); err != nil {
		return nil, err
	}
	if err := checkRounds("rounds", g.Rounds, g.Period, g.Start); err != nil {
		return nil, err
	}
	if err := checkSpan("burst", g.Burst, 1, 0); err != nil {
		return nil, err
	}
	if g.Rounds > 1 && g.Burst >= g.Period {
		return nil, fmt.Errorf("burst %v in every %v, want less than the period", g.Burst, g.Period)
	}
	if len(g.Senders) == 0 {
		return nil, fmt.Errorf("senders: empty, want at least 1")
	}
	senders, err := e.choose("senders", g.Senders, 1)
	if err != nil {
		return nil, err
	}
	if _, ok := find(e.hosts, g.Receiver); !ok {
		return nil, fmt.Errorf("receiver: node %d is not a host of the fabric", g.Receiver)
	}
	if slices.Contains(g.Senders, g.Receiver) {
		return nil, fmt.Errorf("senders: host %d is the receiver, want another", g.Receiver)
	}
	return senders, checkCount(g.Rounds, len(senders))
}
