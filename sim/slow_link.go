package sim

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// SlowLink makes a link slower in both directions: it carries no more than Rate,
// as one that trained to a lower speed, and takes Delay longer. What flows would
// take without it does not change: they are late by it. Headroom does not grow
// with the delay, so PFC may come too late on such a link.
type SlowLink struct {
	Port  model.Port    // either end
	Rate  model.Rate    // 0: the link's own
	Delay time.Duration // more than the link's own
}

func (f SlowLink) String() string {
	switch {
	case f.Delay == 0:
		return fmt.Sprintf("link of port %v at %v", f.Port, f.Rate)
	case f.Rate == 0:
		return fmt.Sprintf("link of port %v takes %v longer", f.Port, f.Delay)
	}
	return fmt.Sprintf("link of port %v at %v, and takes %v longer", f.Port, f.Rate, f.Delay)
}

func (f SlowLink) check(n *Network) error {
	if err := n.hasPort(f.Port); err != nil {
		return err
	}
	if f.Rate == 0 && f.Delay == 0 {
		return fmt.Errorf("neither rate nor delay, want one that slows")
	}
	if f.Delay < 0 || model.Time(f.Delay) > traffic.MaxTime {
		return fmt.Errorf("delay %v, want from 0 to %v", f.Delay, traffic.MaxTime)
	}
	if own := n.Port(f.Port).rate; f.Rate < 0 || f.Rate >= own {
		return fmt.Errorf("rate %v, want above 0 and below %v, the link's own", f.Rate, own)
	}
	return nil
}

func (f SlowLink) apply(n *Network) func() {
	p := n.Port(f.Port)
	a, b := n.slowDown(p, f.Rate, f.Delay), n.slowDown(p.peer, f.Rate, f.Delay)
	return func() { a(); b() }
}

// SlowNIC makes a host send and receive no faster than Rate on each of its ports.
// Unlike a SlowReceiver it does not pause its switch: packets wait there.
type SlowNIC struct {
	Host model.NodeID
	Rate model.Rate
}

func (f SlowNIC) String() string { return fmt.Sprintf("NIC of host %d at %v", f.Host, f.Rate) }

func (f SlowNIC) check(n *Network) error {
	if err := n.hasHost(f.Host); err != nil {
		return err
	}
	for _, p := range n.nodes[f.Host].host.ports {
		if f.Rate <= 0 || f.Rate >= p.rate {
			return fmt.Errorf("rate %v, want above 0 and below %v, the NIC's own", f.Rate, p.rate)
		}
	}
	return nil
}

func (f SlowNIC) apply(n *Network) func() {
	var ends []func()
	for _, p := range n.nodes[f.Host].host.ports {
		ends = append(ends, n.slowDown(p, f.Rate, 0), n.slowDown(p.peer, f.Rate, 0))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// slowDown slows what a port sends.
func (n *Network) slowDown(p *Port, rate model.Rate, delay time.Duration) (end func()) {
	im := &impairment{rate: rate, delay: engine.Of(delay)}
	remove := p.impair.add(im)
	return func() {
		im.rate, im.delay = 0, 0
		if im.lastArrival <= n.Now() {
			remove()
			return
		}
		// What is sent from now on arrives no earlier than what is in flight.
		n.At(im.lastArrival, remove)
	}
}

// slow delays a packet whose transmission begins: the wire is busy for longer, and
// the packet arrives by the returned time later than the link's own delay says.
func (list impairments) slow(at *Port, p *Packet) (extra engine.Time) {
	var floor engine.Time // when the packet before this one arrives
	for _, im := range list {
		if im.rate > 0 {
			at.busyUntil = max(at.busyUntil, at.w.now+engine.Transmit(int64(p.Size), im.rate))
		}
		extra += im.delay
		floor = max(floor, im.lastArrival)
	}
	own := at.busyUntil + at.delay
	extra = max(extra, floor-own)
	for _, im := range list {
		if im.delay > 0 {
			im.lastArrival = own + extra
		}
	}
	return extra
}
