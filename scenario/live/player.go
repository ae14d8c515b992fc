package live

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Player lets a lab's time pass at a pace, and breaks something from time to
// time. Run owns the lab; others reach it through Do.
type Player struct {
	lab      *Lab
	director *Director
	every    time.Duration // of the wall, between faults of the programme; 0: none
	commands chan func()

	wanted   atomic.Uint64 // pace, in parts per billion
	measured atomic.Uint64
	now      atomic.Int64 // the fabric's
	ended    chan struct{}
	after    func() // a step; nil: nothing
}

// NewPlayer makes a player. A fault of the programme comes every so often on
// the wall's clock; 0 is never.
func NewPlayer(l *Lab, d *Director, pace float64, every time.Duration) *Player {
	p := &Player{lab: l, director: d, every: every, commands: make(chan func(), 16), ended: make(chan struct{})}
	p.SetPace(pace)
	return p
}

// PaceOf is how fast a fabric of links of a rate is shown: 1 Gb/s in real time,
// faster ones in slow motion, as fast links carry more packets than can be
// simulated in their time.
func PaceOf(rate model.Rate) float64 { return min(1, float64(model.Gbps)/float64(rate)) }

const billion = 1e9

// SetPace sets how many seconds of the fabric pass in one of the wall.
func (p *Player) SetPace(pace float64) { p.wanted.Store(uint64(pace * billion)) }

// Pace returns the pace that is wanted and the one that was reached lately.
func (p *Player) Pace() (wanted, measured float64) {
	return float64(p.wanted.Load()) / billion, float64(p.measured.Load()) / billion
}

// Now is the fabric's time, for any goroutine.
func (p *Player) Now() model.Time { return model.Time(p.now.Load()) }

// ErrEnded says that the lab is played no more.
var ErrEnded = errors.New("live: the fabric is stopped")

// Do runs f between two steps, when the lab is at rest, and waits for it.
func (p *Player) Do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case p.commands <- func() { f(); close(done) }:
	case <-p.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-p.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// span is how long a fault of the programme lasts, on the fabric's clock.
const span = 40 * time.Millisecond

// Run plays until ctx ends.
func (p *Player) Run(ctx context.Context) error {
	defer close(p.ended)
	start, from := time.Now(), p.lab.Now() // of the present pace
	wanted := p.wanted.Load()
	nextFault, kind := start.Add(p.every/6), 0
	lastWall, lastFabric := start, from
	for ctx.Err() == nil {
		p.serve()
		if err := p.lab.Advance(); err != nil {
			return err
		}
		p.now.Store(int64(p.lab.Now()))
		if p.after != nil {
			p.after()
		}
		now := time.Now()
		if p.every > 0 && now.After(nextFault) {
			nextFault = nextFault.Add(p.every)
			if _, err := p.director.Inject(Kinds()[kind%len(Kinds())].Name, Anywhere, span); err != nil {
				return fmt.Errorf("live: programme: %w", err)
			}
			kind++
		}
		if d := now.Sub(lastWall); d >= time.Second {
			p.measured.Store(uint64(float64(p.lab.Now().Sub(lastFabric)) / float64(d) * billion))
			lastWall, lastFabric = now, p.lab.Now()
		}
		if w := p.wanted.Load(); w != wanted {
			wanted, start, from = w, now, p.lab.Now()
		}
		due := start.Add(time.Duration(float64(p.lab.Now().Sub(from)) / float64(wanted) * billion))
		switch late := now.Sub(due); {
		case late > time.Second:
			start, from = now, p.lab.Now() // too slow for the pace: no hurry afterwards
		case late < 0:
			p.rest(ctx, -late)
		}
	}
	return nil
}

// serve runs the commands that wait.
func (p *Player) serve() {
	for {
		select {
		case f := <-p.commands:
			f()
		default:
			return
		}
	}
}

// rest waits, and serves commands meanwhile.
func (p *Player) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case f := <-p.commands:
			f()
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
