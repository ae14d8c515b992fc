package live

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
)

// Player lets a lab's time pass at a pace, and breaks something from time to
// time. Run owns the lab; others reach it through Do.
type Player struct {
	*control.EventLoop
	lab      *Lab
	director *Director
	every    time.Duration // of the wall, between faults of the programme; 0: none

	wanted   atomic.Uint64 // pace, in parts per billion
	measured atomic.Uint64
	now      atomic.Int64 // the fabric's
	after    func()       // a step; nil: nothing
}

// newPlayer makes a player. A fault of the programme comes every so often on
// the wall's clock; 0 is never.
func newPlayer(l *Lab, d *Director, pace float64, every time.Duration) *Player {
	p := &Player{lab: l, director: d, every: every, EventLoop: control.NewEventLoop()}
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

// span is how long a fault of the programme lasts, on the fabric's clock.
const span = 40 * time.Millisecond

// Run plays until ctx ends.
func (p *Player) Run(ctx context.Context) error {
	defer p.Close()
	start, from := time.Now(), p.lab.Now() // of the present pace
	wanted := p.wanted.Load()
	nextFault, kind := start.Add(p.every/6), 0
	lastWall, lastFabric := start, from
	for ctx.Err() == nil {
		p.RunPending()
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
			p.Sleep(ctx, -late)
		}
	}
	return nil
}
