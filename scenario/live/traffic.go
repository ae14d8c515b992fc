package live

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// background makes endless traffic, one interval at a time: RDMA of shuffles of
// data in a lossless class, web search over TCP in a lossy one.
type background struct {
	seed  uint64
	load  float64
	scale float64 // of flows
	hosts []traffic.Host
	until engine.Time // flows are made up to here
	round uint64      // intervals so far
}

// trafficInterval is how much traffic is made at once.
const trafficInterval = 10 * time.Millisecond

// addFlows makes the flows that start within the next Step, and some more.
func (b *background) addFlows(n *sim.Network) error {
	if b.hosts == nil {
		b.hosts = traffic.HostsOf(n.Fabric())
	}
	for b.until <= n.Now()+engine.Of(Step) {
		list, err := b.draw(b.until.Model())
		if err != nil {
			return err
		}
		if err := n.AddFlows(list); err != nil {
			return err
		}
		b.until += engine.Of(trafficInterval)
		b.round++
	}
	return nil
}

// draw makes the flows of one interval. Each interval has a separate seed.
func (b *background) draw(from model.Time) ([]traffic.Flow, error) {
	rows, err := traffic.Sizes("hadoop")
	if err != nil {
		return nil, err
	}
	web, err := traffic.Sizes("websearch")
	if err != nil {
		return nil, err
	}
	rdma := traffic.Poisson{Class: traffic.DefaultClass(), Sizes: rows.Scaled(b.scale), Load: 0.7 * b.load, Start: from, Duration: trafficInterval}
	tcp := traffic.Poisson{
		Class: traffic.Class{Priority: 1, Transport: traffic.TCP, DstPort: 443},
		Sizes: web.Scaled(b.scale), Load: 0.3 * b.load, Start: from, Duration: trafficInterval,
	}
	return traffic.Generate(b.seed+b.round<<32, b.hosts, rdma, tcp)
}
