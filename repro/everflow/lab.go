package everflow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/mirror"
)

const ms = engine.Millisecond

// setup configures a lab. The zero value is a fat-tree of 16 hosts whose switches
// mirror as inswitch/mirror does by default.
type setup struct {
	fabric *topo.Fabric
	seed   uint64
	// mirrors changes the configuration of a switch's mirrors.
	mirrors func(id model.NodeID, c *mirror.Config)
	loss    float64       // of mirrors
	linger  time.Duration // how long reports wait for each other
	keepAll bool          // the controller keeps every trace
	// seen receives every mirror as it arrives, closed every trace as it closes.
	seen   func(at model.Time, m *wire.Mirror)
	closed func(t *trace.Trace)
}

// lab is a simulated fabric and a controller for traces.
type lab struct {
	*sim.Network
	*tracewatch.Watch
	rng *rand.Rand
}

func newLab(s setup) (*lab, error) {
	if s.fabric == nil {
		var err error
		if s.fabric, err = topo.FatTree(4, topo.DefaultLinks()); err != nil {
			return nil, err
		}
	}
	routes, err := topo.NewRoutes(s.fabric, topo.RouteConfig{Seed: s.seed})
	if err != nil {
		return nil, err
	}
	cfg := sim.DefaultConfig()
	cfg.Seed = s.seed
	l := &lab{rng: rand.New(rand.NewPCG(s.seed, 7))}
	if l.Network, err = sim.New(routes, cfg); err != nil {
		return nil, err
	}
	watch := tracewatch.DefaultConfig(l.Intent())
	watch.Trace.CloseAfter, watch.Trace.RouteSettle = time.Millisecond, time.Millisecond
	watch.Period, watch.Window, watch.KeepAll = time.Second, 0, s.keepAll || s.closed != nil
	if l.Watch, err = tracewatch.New(watch, nil, tracewatch.Output{Trace: s.closed}); err != nil {
		return nil, err
	}
	mgmt := simhost.DefaultManagementConfig()
	mgmt.Seed, mgmt.Loss, mgmt.Reorder = s.seed, s.loss, true
	carrier, err := simhost.NewManagement(l.Network, mgmt, func(at model.Time, _ model.NodeID, datagram []byte) {
		var r dta.Reader
		if r.Reset(datagram) != nil {
			return
		}
		var m wire.Mirror
		for rep := (dta.Report{}); r.Next(&rep); {
			if _, err := m.Parse(rep.Data); err != nil {
				continue
			}
			if s.seen != nil {
				s.seen(at, &m)
			}
			l.AddMirror(at, &m)
		}
	})
	if err != nil {
		return nil, err
	}
	host := simhost.DefaultConfig()
	host.Carrier, host.Linger = carrier, s.linger
	for _, id := range s.fabric.Switches() {
		c := mirror.DefaultConfig()
		c.Rate = 0
		if s.mirrors != nil {
			s.mirrors(id, &c)
		}
		p, err := mirror.New(simhost.Describe(l.Network, id, 0), c)
		if err != nil {
			return nil, err
		}
		if _, err := simhost.Attach(l.Network, id, inswitch.NewPipeline(p), host); err != nil {
			return nil, err
		}
	}
	l.tick()
	return l, nil
}

// tick closes traces in time, also when no more mirrors arrive.
func (l *lab) tick() {
	l.Advance(l.Now().Model())
	l.At(l.Now()+ms/2, l.tick)
}

// run simulates until an instant and then as long as traces need to close.
func (l *lab) run(ctx context.Context, until engine.Time) error {
	for l.Now() < until+3*ms {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.Run(l.Now() + ms)
	}
	l.Finish()
	return nil
}

// addFlows adds flows between random hosts, of all transports in turn, in the
// first two milliseconds.
func (l *lab) addFlows(flows int) error {
	hosts := l.Network.Fabric().Hosts()
	var list []traffic.Flow
	for i := range flows {
		src, dst := l.rng.IntN(len(hosts)), l.rng.IntN(len(hosts)-1)
		if dst >= src {
			dst++
		}
		list = append(list, traffic.Flow{
			Src: hosts[src], Dst: hosts[dst], Bytes: model.Bytes(20_000 +
				l.rng.IntN(40_000)), Priority: 3, Start: model.Time(l.rng.IntN(2_000_000)),
			Transport: []traffic.Transport{
				traffic.RDMA, traffic.TCP,
				traffic.UDP,
			}[i%3], Rate: 5 * model.Gbps, V6: i/3%4 == 3,
		})
	}
	return l.AddFlows(list)
}

func percent(part, of uint64) string {
	if of == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g %%", 100*float64(part)/float64(of))
}
