package live

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// background makes traffic without end, a stretch at a time: RDMA of shuffles
// of data in a lossless class, web search over TCP in a lossy one.
type background struct {
	seed  uint64
	load  float64
	scale float64 // of flows
	hosts []traffic.Host
	until engine.Time // flows are made up to here
	turn  uint64
}

// stretch is how much traffic is made at once.
const stretch = 10 * time.Millisecond

func newBackground(cfg Config, f *topo.Fabric) background {
	return background{seed: cfg.Seed, load: cfg.Load, scale: scaleOf(cfg.Rate), hosts: traffic.HostsOf(f)}
}

// fill makes flows as long as the present may need them.
func (b *background) fill(n *sim.Network) error {
	for b.until <= n.Now()+engine.Of(Step) {
		list, err := b.draw(b.until.Model())
		if err != nil {
			return err
		}
		if err := n.AddFlows(list); err != nil {
			return err
		}
		b.until += engine.Of(stretch)
		b.turn++
	}
	return nil
}

// draw makes the flows of one stretch. Each is drawn with a seed of its own.
func (b *background) draw(from model.Time) ([]traffic.Flow, error) {
	rows, err := traffic.Sizes("hadoop")
	if err != nil {
		return nil, err
	}
	web, err := traffic.Sizes("websearch")
	if err != nil {
		return nil, err
	}
	rdma := traffic.Poisson{Class: traffic.DefaultClass(), Sizes: rows.Scaled(b.scale), Load: 0.7 * b.load, Start: from, Duration: stretch}
	tcp := traffic.Poisson{
		Class: traffic.Class{Priority: 1, Transport: traffic.TCP, DstPort: 443},
		Sizes: web.Scaled(b.scale), Load: 0.3 * b.load, Start: from, Duration: stretch,
	}
	return traffic.Generate(b.seed+b.turn<<32, b.hosts, rdma, tcp)
}
