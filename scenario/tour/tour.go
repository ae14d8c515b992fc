// Package tour shows Weft's ground floor end to end on an idle fabric: real
// packets walk from host to host by the switches' forwarding tables, every
// switch labels them and reports over DTA through a real UDP socket, one
// switch is broken on purpose, and the reports alone must tell which.
//
// The fabric carries one packet at a time, so its queues are empty and its
// times follow from rates and delays; load is the simulator's business.
package tour

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config says what to tour. The zero value of Pcap writes no capture.
type Config struct {
	K     int    // of the fat-tree
	Flows int    // packets to send, one per flow
	Seed  uint64 // decides flows, routes and the fault; the same seed replays
	Pcap  string // file for all frames, in pcapng
}

// DefaultConfig is the tour that needs no configuration.
func DefaultConfig() Config { return Config{K: 4, Flows: 500, Seed: 1} }

// Report is what the tour saw.
type Report struct {
	Fabric    string  `json:"fabric"`
	Hosts     int     `json:"hosts"`
	Switches  int     `json:"switches"`
	Links     int     `json:"links"`
	Sent      int     `json:"packets_sent"`
	Delivered int     `json:"packets_delivered"`
	Identical int     `json:"packets_restored_bit_for_bit"`
	Labels    int     `json:"labels_written"`
	Sample    Journey `json:"sample"`
	Transport Traffic `json:"reports"`
	Injected  Fault   `json:"injected"`
	Found     []Fault `json:"found"`
	Pcap      string  `json:"capture,omitempty"`
	Frames    int     `json:"frames_captured"`
}

// Right tells whether the fault, the whole fault and nothing else was found.
func (r *Report) Right() bool { return len(r.Found) == 1 && r.Found[0] == r.Injected }

// Fault is a switch that swallows packets to a host.
type Fault struct {
	Switch string `json:"switch"`
	Host   string `json:"host"`
}

// Journey is one packet's way as its labels tell it.
type Journey struct {
	Flow model.FlowKey `json:"flow"`
	Hops []Hop         `json:"hops"`
}

// Hop is one label, with names in place of numbers.
type Hop struct {
	Switch  string        `json:"switch"`
	In      string        `json:"in"`
	Out     string        `json:"out"`
	At      model.Time    `json:"at"`
	Latency time.Duration `json:"hop_latency_ns"`
	// Link is the time since the label before: serialization and propagation
	// on the link between the two switches. Zero at the first.
	Link time.Duration `json:"link_latency_ns"`
}

// Run takes the tour.
func Run(ctx context.Context, cfg Config) (rep *Report, err error) {
	f, err := topo.FatTree(cfg.K, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	if cfg.Flows < 1 {
		return nil, fmt.Errorf("tour: %d flows, want at least 1", cfg.Flows)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
	if err != nil {
		return nil, err
	}
	rep = &Report{Fabric: f.Name(), Hosts: len(f.Hosts()), Switches: len(f.Switches()), Links: len(f.Links()), Pcap: cfg.Pcap}

	col, err := newCollector()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, col.close()) }()
	w, err := newWalker(f, routes, col, cfg.Pcap)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()

	sending := make(chan struct{})
	received := make(chan error, 1)
	go func() { received <- col.receive(sending, len(f.Switches())) }()
	rng := rand.New(rand.NewPCG(cfg.Seed, 0))
	rep.Injected = w.breakOne(rng)
	err = w.sendAll(ctx, rng, cfg.Flows)
	close(sending)
	if err := errors.Join(err, <-received); err != nil {
		return nil, err
	}
	rep.Sent, rep.Delivered, rep.Identical, rep.Labels, rep.Frames = w.sent, w.delivered, w.identical, w.labels, w.frames
	rep.Transport = col.traffic
	if col.traffic.Lost == 0 && col.traffic.Malformed == 0 {
		// With reports missing, a flow's last hop is no longer known: no verdict
		// is better than a wrong one.
		rep.Found = col.judge(f, topo.NewIntent(routes).At(0))
	}
	rep.Sample = col.longest(f)
	return rep, nil
}

// breakOne makes one leaf or spine drop what is for one host.
func (w *walker) breakOne(rng *rand.Rand) Fault {
	var inner []model.NodeID
	for _, s := range w.f.Switches() {
		if w.f.Node(s).Role != topo.ToR {
			inner = append(inner, s)
		}
	}
	// A leaf of the host's own pod is on half of the ways to it.
	host := w.f.Node(w.f.Hosts()[rng.IntN(len(w.f.Hosts()))])
	var sw *topo.Node
	for sw == nil || sw.Pod != host.Pod {
		sw = w.f.Node(inner[rng.IntN(len(inner))])
	}
	if err := w.tables[sw.ID].SetDest(host.IPv4); err != nil {
		panic(err) // both are the fabric's own
	}
	return Fault{Switch: sw.Name, Host: host.Name}
}
