package simhost

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/dta"
)

// InBandConfig is how reports are sent through the fabric.
type InBandConfig struct {
	Collector model.NodeID   // a host
	Priority  model.Priority // of the packets: a lossless one can be paused, others dropped
	Control   bool           // use the queue that PFC never pauses
}

// InBand carries reports as UDP packets from a switch's address to a host. They
// are queued, paused and dropped like others. The sink gets the time of the
// collector's clock.
type InBand struct {
	net  *sim.Network
	cfg  InBandConfig
	host *sim.Host
	addr model.Addr
	sink Sink

	from    map[model.NodeID]*Switch
	watcher *dropWatcher
}

// NewInBand makes a host the collector. Packets to its DTA port go to the sink;
// the previous receiver of that host gets the others.
func NewInBand(n *sim.Network, cfg InBandConfig, sink Sink) (*InBand, error) {
	if !n.Fabric().HasNode(cfg.Collector) || n.Host(cfg.Collector) == nil {
		return nil, fmt.Errorf("simhost: collector %d is not a host", cfg.Collector)
	}
	if cfg.Priority > 7 {
		return nil, fmt.Errorf("simhost: priority %d of in-band reports, want 0 to 7", cfg.Priority)
	}
	b := &InBand{
		net: n, cfg: cfg, host: n.Host(cfg.Collector), addr: n.Fabric().Node(cfg.Collector).IPv4, sink: sink,
		from: map[model.NodeID]*Switch{},
	}
	n.UseOneCore() // reports are settled where they are delivered or dropped, at any node
	others := b.host.Receiver()
	b.host.SetReceiver(func(p *sim.Packet) {
		if b.isReport(p) {
			b.receive(p)
		} else if others != nil {
			others(p)
		}
	})
	return b, nil
}

// limit keeps reports no longer than data packets, for which headroom was
// computed.
func (b *InBand) limit() int { return int(b.net.Config().MTU) }

func (b *InBand) carry(from *Switch, datagram []byte, reports int) {
	b.installWatcher()
	src := netip.AddrPortFrom(b.net.Fabric().Node(from.sw.ID).IPv4.Netip(), dta.Port)
	key := model.NewFlowKey(src, netip.AddrPortFrom(b.addr.Netip(), dta.Port), model.UDP)
	out, ok := from.sw.NextHop(key)
	if !ok {
		from.loseInFlight(Unroutable, reports)
		return
	}
	p := from.sw.NewPacket()
	p.Kind, p.Key, p.TTL = sim.KindUDP, key, defaultTTL
	p.Priority, p.Control, p.DSCP = b.cfg.Priority, b.cfg.Control, uint8(b.cfg.Priority)<<3
	p.Payload = int32(len(datagram))
	p.Size = max(ethernetSize+keyBytes(&key)+p.Payload, minFrame)
	e := from.sw.Extra(p)
	e.Content = append(e.Content, datagram...)

	var h dta.Header
	_, _ = h.Parse(datagram)
	b.from[from.sw.ID] = from
	from.inBand[h.Seq] = reports
	from.sw.Send(p, out)
}

func (b *InBand) isReport(p *sim.Packet) bool {
	return p.Kind == sim.KindUDP && p.Extra != nil && p.Key.Dst == b.addr && p.Key.DstPort == dta.Port
}

// claim finds the switch and the reports of a packet and removes them from
// those in flight. A copy of a packet that was settled before finds nothing.
func (b *InBand) claim(p *sim.Packet) (from *Switch, reports int) {
	var h dta.Header
	if _, err := h.Parse(p.Extra.Content); err != nil {
		return nil, 0
	}
	from = b.from[h.Reporter]
	if from == nil {
		return nil, 0
	}
	reports, ok := from.inBand[h.Seq]
	if !ok {
		return nil, 0
	}
	delete(from.inBand, h.Seq)
	return from, reports
}

func (b *InBand) receive(p *sim.Packet) {
	if from, reports := b.claim(p); from != nil {
		from.arrived(reports)
		b.sink(b.host.Clock(), from.sw.ID, p.Extra.Content)
	}
}

// installWatcher observes drops in the fabric. It waits for the first datagram,
// because other observers are installed before the run.
func (b *InBand) installWatcher() {
	if b.watcher != nil {
		return
	}
	b.watcher = &dropWatcher{Observer: b.net.Observer(), in: b}
	if b.watcher.Observer == nil {
		b.watcher.Observer = sim.NopObserver{}
	}
	b.net.Observe(b.watcher)
}

// dropWatcher records reports that do not reach the collector, and forwards all
// events.
type dropWatcher struct {
	sim.Observer
	in *InBand
}

func (w *dropWatcher) Dropped(now engine.Time, p *sim.Packet, at *sim.Port, why sim.Reason) {
	if w.in.isReport(p) {
		w.loseReport(p, LossReason("fabric: "+why.String()))
	}
	w.Observer.Dropped(now, p, at, why)
}

func (w *dropWatcher) Delivered(now engine.Time, p *sim.Packet, to *sim.Host) {
	if to != w.in.host && w.in.isReport(p) {
		w.loseReport(p, Misrouted)
	}
	w.Observer.Delivered(now, p, to)
}

func (w *dropWatcher) loseReport(p *sim.Packet, why LossReason) {
	if from, reports := w.in.claim(p); from != nil {
		from.loseInFlight(why, reports)
	}
}
