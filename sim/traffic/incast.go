package traffic

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Incast makes many hosts send to one at the same time, repeatedly: a
// micro-burst, the usual cause of PFC. Every round is a Group.
type Incast struct {
	Class
	Receivers []model.NodeID // each round draws one of these; empty: of all
	Senders   []model.NodeID // each round draws Fanin of these, never the receiver; empty: of all
	Fanin     int            // senders per round; 0: all of Senders
	Bytes     model.Bytes    // from each sender
	Start     model.Time     // of the first round
	Jitter    time.Duration  // a sender starts up to this long after its round; 0: all at once
	Rounds    int
	Period    time.Duration // from round to round
}

// DefaultIncast returns one burst of 500 KB from each of 8 hosts at once: 40 µs
// on a sender's link of 100 Gb/s and 320 µs on the receiver's.
func DefaultIncast() Incast {
	return Incast{Class: DefaultClass(), Fanin: 8, Bytes: 500 * model.KB, Rounds: 1, Period: time.Millisecond}
}

func (g Incast) kind() string { return "incast" }

func (g Incast) flows(e *env) ([]Flow, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	receivers, err := e.choose("receivers", g.Receivers, 1)
	if err != nil {
		return nil, err
	}
	senders, err := e.choose("senders", g.Senders, 1)
	if err != nil {
		return nil, err
	}
	most := len(senders)
	if g.Fanin > 0 {
		most = min(most, g.Fanin)
	}
	if err := checkCount(most, g.Rounds); err != nil {
		return nil, err
	}
	pool := slices.Clone(senders)
	sends := make(map[model.NodeID]bool, len(senders))
	for _, h := range senders {
		sends[h.ID] = true
	}
	out := make([]Flow, 0, most*g.Rounds)
	for round := range g.Rounds {
		to := receivers[e.rng.IntN(len(receivers))].ID
		others := len(pool)
		if sends[to] {
			others--
		}
		fanin := g.Fanin
		if fanin == 0 {
			fanin = others
		}
		if fanin < 1 || fanin > others {
			return nil, fmt.Errorf("fan-in %d, want from 1 to %d, the number of senders without the receiver", fanin, others)
		}
		at := g.Start.Add(time.Duration(round) * g.Period)
		for _, from := range draw(e, pool, fanin, to) {
			f := g.flow(from.ID, to, at, g.Bytes)
			if g.Jitter > 0 {
				f.Start = at.Add(time.Duration(e.rng.Int64N(int64(g.Jitter))))
			}
			f.Group = round + 1
			out = append(out, f)
		}
	}
	return out, nil
}

func (g Incast) check() error {
	if err := g.Class.check(); err != nil {
		return err
	}
	if err := checkBytes("bytes", g.Bytes); err != nil {
		return err
	}
	if err := checkStart(g.Start); err != nil {
		return err
	}
	if err := checkRounds("rounds", g.Rounds, g.Period, g.Start); err != nil {
		return err
	}
	if g.Fanin < 0 {
		return fmt.Errorf("fan-in %d, want at least 0", g.Fanin)
	}
	last := g.Start
	if g.Rounds > 1 {
		last = g.Start.Add(time.Duration(g.Rounds-1) * g.Period)
	}
	return checkSpan("jitter", g.Jitter, 0, last)
}

// draw returns n different hosts of the pool in random order, and never the
// host except. The pool must hold that many; it is left in another order.
func draw(e *env, pool []Host, n int, except model.NodeID) []Host {
	last := len(pool)
	for i := 0; i < n; {
		j := i + e.rng.IntN(last-i)
		if pool[j].ID == except {
			last--
			pool[j], pool[last] = pool[last], pool[j]
			continue
		}
		pool[i], pool[j] = pool[j], pool[i]
		i++
	}
	return pool[:n]
}
