// Package realtime runs a scenario at the pace of a clock, for tests of services that
// receive reports over sockets. The clocks of its nodes show that clock's time. The
// simulator works ahead of it, and a report is handed out when its time has come: a
// simulator that stumbles does not bend the fabric's time. What becomes of a report is
// its caller's.
package realtime

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Options are what a Fabric is made of.
type Options struct {
	Scenario string // content of its file; the duration is not read
	// Now is the fabric's clock. Departure is the one by which reports leave; nil: the
	// same.
	Now, Departure func() time.Time
	// Send is called for every datagram, in the order of their times, when its time has
	// come. It may keep it.
	Send func(at time.Time, from model.NodeID, datagram []byte)
	// Step, if not nil, is called after every simulated millisecond. It may change the
	// network.
	Step func(simulated time.Duration)

	// Requests is the list of the diagnosis requests that hosts send about slow flows,
	// and the intervals are those of one flow and of one host.
	Requests                     dta.ListID
	RepollInterval, HostInterval time.Duration
}

// Fabric is a simulated fabric. Once it runs, its network is for Change alone.
type Fabric struct {
	Network *sim.Network
	Base    time.Time // what clocks show when the run begins

	t     testing.TB
	o     Options
	polls map[model.NodeID]*dta.Writer
	mu    sync.Mutex // of the network
	queue chan departure
}

// departure is a datagram that waits for its time.
type departure struct {
	at       time.Time
	from     model.NodeID
	datagram []byte
}

// Ahead is how far the simulator works ahead.
const Ahead = 300 * time.Millisecond

// New makes a fabric that does not run yet.
func New(t testing.TB, o Options) *Fabric {
	t.Helper()
	if o.Departure == nil {
		o.Departure = o.Now
	}
	s, err := scenario.Parse("realtime.yaml", []byte(o.Scenario))
	if err != nil {
		t.Fatal(err)
	}
	f := &Fabric{t: t, o: o, Base: o.Now().Add(Ahead), polls: map[model.NodeID]*dta.Writer{}, queue: make(chan departure, 1<<16)}
	s.Seed, s.Base = 1, model.TimeOf(f.Base)
	session, err := scenario.Open(s, f.depart)
	if err != nil {
		t.Fatal(err)
	}
	f.Network = session.Network
	f.watchFlows()
	return f
}

// depart has a datagram leave at a time of the run.
func (f *Fabric) depart(at model.Time, from model.NodeID, datagram []byte) {
	f.queue <- departure{f.Base.Add(time.Duration(at)), from, slices.Clone(datagram)}
}

// watchFlows has hosts request diagnoses of slow flows.
func (f *Fabric) watchFlows() {
	var configs []agent.Config
	for _, id := range f.Network.Fabric().Hosts() {
		c := agent.DefaultConfig(id)
		c.RTTFactor, c.MinRepollInterval, c.MinHostInterval = 20, f.o.RepollInterval, f.o.HostInterval
		configs = append(configs, c)
	}
	_, err := simhost.NewAgents(f.Network, 100*time.Microsecond, configs, func(at model.Time, r agent.DiagnosisRequest) {
		from := r.Poll.Event.Host
		w := f.polls[from]
		if w == nil {
			n := dta.NewWriter(from, 1)
			w = &n
			f.polls[from] = w
		}
		w.Begin(make([]byte, 1472))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: f.o.Requests, Data: r.Poll.AppendTo(nil)}); err != nil {
			f.t.Error(err)
			return
		}
		f.depart(at-model.TimeOf(f.Base), from, w.Finish())
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// Start runs the fabric until the returned function is called, or the test ends.
func (f *Fabric) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(f.queue)
		for ctx.Err() == nil {
			f.mu.Lock()
			f.Network.Run(f.Network.Now() + engine.Of(time.Millisecond))
			simulated := f.Network.Now().Duration()
			if f.o.Step != nil {
				f.o.Step(simulated)
			}
			f.mu.Unlock()
			if wait := f.Base.Add(simulated - Ahead).Sub(f.o.Now()); wait > 10*time.Millisecond {
				time.Sleep(wait)
			}
		}
	})
	wg.Go(func() {
		for d := range f.queue {
			if ctx.Err() != nil {
				continue // what is left is not sent
			}
			if wait := d.at.Sub(f.o.Departure()); wait > time.Millisecond { // a busy machine sleeps long
				time.Sleep(wait)
			}
			f.o.Send(d.at, d.from, d.datagram)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	f.t.Cleanup(stop)
	return stop
}

// Change has a function do something to the network between two milliseconds. Its error
// ends the test.
func (f *Fabric) Change(change func() error) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := change(); err != nil {
		f.t.Fatal(err)
	}
}

// Chatter adds a flow of each host to the one some places after it, so that every switch
// has something to report. The function makes each; the i-th has the source port first+i.
func (f *Fabric) Chatter(first uint16, places int, flow func(from, to model.NodeID, port uint16) traffic.Flow) {
	f.t.Helper()
	f.Change(func() error {
		hosts := f.Network.Fabric().Hosts()
		var list []traffic.Flow
		for i, from := range hosts {
			list = append(list, flow(from, hosts[(i+places)%len(hosts)], first+uint16(i)))
		}
		return f.Network.AddFlows(list)
	})
}

// FromOtherPods makes a flow of each host of another pod than a host's. The number of a
// host counts all hosts.
func (f *Fabric) FromOtherPods(to model.NodeID, each func(from model.NodeID, i int) traffic.Flow) (list []traffic.Flow) {
	fabric := f.Network.Fabric()
	for i, from := range fabric.Hosts() {
		if fabric.Node(from).Pod != fabric.Node(to).Pod {
			list = append(list, each(from, i))
		}
	}
	return list
}
