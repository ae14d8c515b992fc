package labels

import (
	"math/rand/v2"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// ProbePort is the UDP destination of packets that are sent to be labelled: that of
// discard.
const ProbePort = 9

// Prober has simulated hosts send packets to be labelled. It implements portwatch.Prober.
type Prober struct {
	Lost uint64 // commands to hosts that did not arrive

	net     *sim.Network
	hosts   *simhost.Probers
	channel Channel
	rng     *rand.Rand
	series  uint32
}

// NewProber returns a prober whose commands go over a channel to the hosts.
func NewProber(n *sim.Network, hosts *simhost.Probers, ch Channel) *Prober {
	return &Prober{net: n, hosts: hosts, channel: ch, rng: rand.New(rand.NewPCG(ch.Seed, 7)), series: firstSeries}
}

// firstSeries keeps away from the numbers of guided probes, which count from 1.
const firstSeries = 1 << 31

// Probe is part of portwatch.Prober.
func (p *Prober) Probe(f coverage.ProbeFlow) error {
	if p.rng.Float64() < p.channel.Loss {
		p.Lost++
		return nil
	}
	s := prober.Series{ID: p.series, Patterns: []prober.Packet{{Key: f.Key}}, Interval: 1, Count: 1}
	p.series++
	if p.channel.Delay == 0 {
		return p.hosts.Inject(f.Host, s)
	}
	p.net.At(p.net.Now()+engine.Of(p.channel.Delay), func() {
		if p.hosts.Inject(f.Host, s) != nil {
			p.Lost++ // the host has too many series
		}
	})
	return nil
}
