package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Config is what an agent observes, and where it reports.
type Config struct {
	Node       model.NodeID   // of the topology: who reports
	Flowset    flowset.Config // List is that of the node
	Interfaces []Interface
	To         netip.AddrPort // of the collector
	// Mirrors are packets whose start is reported, too; nil: none are. List and Lists are
	// those of the fabric, and all agents have the same seed and sample.
	Mirrors *mirror.Config
	Key     *dta.MAC // authenticates reports; nil: none does
	// Queue is how many datagrams may wait for the socket. Reports that find it full
	// are dropped and counted.
	Queue int
}

// Interface is one interface of this network namespace.
type Interface struct {
	Name string
	Port model.PortID // its number in the topology
	Hook ebpf.Hook
}

// DefaultConfig keeps flowsets of 1,000 flows in each slot of 10 ms. A table of 10,000
// flows, as switches have, takes 260 Mb/s to report.
func DefaultConfig() Config {
	c := Config{Flowset: flowset.DefaultConfig(), Queue: 1024}
	if err := c.SetFlows(1000); err != nil {
		panic(err) // within the measured range
	}
	return c
}

// DefaultMirrors mirrors TCP packets that open or close connections, and marked ones, with
// at most 100 Mb/s of reports.
func DefaultMirrors() mirror.Config {
	c := mirror.DefaultConfig()
	c.Protocol, c.Rate = false, 100*model.Mbps
	return c
}

// SetFlows sizes the flowsets of both families for a number of flows in a slot.
func (c *Config) SetFlows(flows int) error {
	plan, err := ebpf.Plan(flows)
	if err != nil {
		return err
	}
	c.Flowset.IPv4 = flowset.Table{Geometry: plan.Geometry, Layout: flowset.Layout4}
	c.Flowset.IPv6 = flowset.Table{Geometry: plan.Geometry, Layout: flowset.Layout6}
	return nil
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case len(c.Interfaces) == 0:
		return errors.New("agent: no interface, want at least one")
	case !c.To.IsValid():
		return errors.New("agent: no address of a collector")
	case c.Queue < 1:
		return fmt.Errorf("agent: queue of %d datagrams, want at least 1", c.Queue)
	}
	ports := map[model.PortID]string{}
	for _, i := range c.Interfaces {
		if other, taken := ports[i.Port]; taken || i.Port == 0 {
			return fmt.Errorf("agent: interface %s is port %d, which is 0 or also that of %q; want one port each, from 1", i.Name, i.Port, other)
		}
		ports[i.Port] = i.Name
	}
	return c.Flowset.Check()
}

// Agent observes and reports.
type Agent struct {
	cfg   Config
	flows *ebpf.Flowset
	conn  *net.UDPConn

	mu       sync.Mutex    // guards all below
	mirrors  *ebpf.Mirrors // nil without any, and after Close
	reporter *reporter.Reporter
	stats    Stats
}

// New attaches programs to the interfaces of the calling thread's network namespace.
// They count nothing before Run.
func New(cfg Config) (_ *Agent, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Flowset.Seed == 0 {
		cfg.Flowset.Seed = rand.Uint64()
	}
	a := &Agent{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	packing := reporter.DefaultConfig(cfg.Node, dta.Seq(rand.Uint32()))
	packing.MaxDatagrams, packing.HistoryBytes = cfg.Queue, 0
	packing.Key, packing.Start = cfg.Key, model.TimeOf(time.Now())
	if cfg.Flowset.ChunkBytes == 0 {
		cfg.Flowset.ChunkBytes = cfg.Flowset.MaxChunk(0) - dta.SignedOverhead
	}
	if a.reporter, err = reporter.New(packing); err != nil {
		return nil, err
	}
	if a.flows, err = ebpf.Load(cfg.Node, cfg.Flowset); err != nil {
		return nil, err
	}
	programs := []program{a.flows}
	if cfg.Mirrors != nil {
		if a.mirrors, err = ebpf.LoadMirrors(cfg.Node, *cfg.Mirrors); err != nil {
			return nil, err
		}
		programs = append(programs, a.mirrors)
	}
	for _, p := range programs {
		if err := attachAll(p, cfg.Interfaces); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// program is a program of dataplane/ebpf.
type program interface {
	NumberPort(ifindex int, port model.PortID) error
	Attach(ifindex int, hook ebpf.Hook) error
}

// attachAll attaches a program to interfaces. All have numbers before the first packet.
func attachAll(p program, interfaces []Interface) error {
	var indices []int
	for _, i := range interfaces {
		at, err := net.InterfaceByName(i.Name)
		if err != nil {
			return fmt.Errorf("agent: interface %s: %w", i.Name, err)
		}
		if err := p.NumberPort(at.Index, i.Port); err != nil {
			return err
		}
		indices = append(indices, at.Index)
	}
	for n, i := range interfaces {
		if err := p.Attach(indices[n], i.Hook); err != nil {
			return fmt.Errorf("agent: interface %s: %w", i.Name, err)
		}
	}
	return nil
}

// Run counts and reports until ctx is done. It then reports what was counted, and
// detaches the programs.
func (a *Agent) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.cfg.To)); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	var answers sync.WaitGroup
	answers.Go(a.readAnswers)
	defer func() {
		err = errors.Join(err, a.conn.SetReadDeadline(time.Unix(0, 1))) // ends readAnswers
		answers.Wait()
	}()
	mirrored := make(chan error, 1)
	mirrors := a.mirrors // until Close, which comes later
	go func() { mirrored <- a.reportMirrors(mirrors) }()
	err = a.followClock(ctx)
	if mirrors != nil {
		err = errors.Join(err, mirrors.DetachAll())
		err = errors.Join(err, mirrors.Interrupt())
	}
	err = errors.Join(err, <-mirrored)
	// The last slot is reported as far as it came.
	err = errors.Join(err, a.flows.DetachAll())
	a.flows.Stop()
	_, last := a.export()
	return errors.Join(err, last)
}

// followClock closes the tables of slots by the wall clock, and reports them.
func (a *Agent) followClock(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		woke := time.Now()
		now, err := a.flows.Advance()
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		idle, err := a.export()
		if err != nil {
			return err
		}
		// The clock does not move between two ticks: a timer for the exact end of the
		// slot would find the same time.
		timer.Reset(time.Duration(a.flows.NextSlot(now)-now) + a.morePerWake(idle) + afterTick - time.Since(woke))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// morePerWake is the length of the slots after one that are exported together with it: a
// machine is to sleep, and most of all an idle one.
func (a *Agent) morePerWake(idle bool) time.Duration {
	most := time.Duration(ebpf.SlotsPerWake)
	if idle {
		most = ebpf.SlotsPerIdleWake
	}
	slots := min(wakeInterval/a.cfg.Flowset.Slot, most)
	return max(slots-1, 0) * a.cfg.Flowset.Slot
}

// wakeInterval is how often an agent wakes, where its slots are shorter and tables suffice.
const wakeInterval = 50 * time.Millisecond

// afterTick is how long after the end of a slot its table is closed: the next tick is past
// by then where HZ is 250 or more.
const afterTick = 4 * time.Millisecond

// export reports the slots that have ended. It reports whether all were without packets.
func (a *Agent) export() (idle bool, err error) {
	e, err := a.flows.Export(func(chunk []byte) { a.report(a.cfg.Flowset.List, chunk) })
	if err != nil {
		return false, fmt.Errorf("agent: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reporter.Flush(model.TimeOf(time.Now()))
	a.send()
	a.stats.Wakes++
	a.stats.addExported(&e)
	return e.Waits == 0, nil
}

// reportMirrors reports mirrors until it is interrupted and all are. It sleeps while no
// packet is selected.
func (a *Agent) reportMirrors(mirrors *ebpf.Mirrors) error {
	if mirrors == nil {
		return nil
	}
	for {
		err := mirrors.Read(a.report)
		a.mu.Lock()
		a.reporter.Flush(model.TimeOf(time.Now()))
		a.send()
		a.mu.Unlock()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
}

// report packs what is appended to a list.
func (a *Agent) report(list dta.ListID, data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// What cannot be packed is counted by the reporter.
	_ = a.reporter.AddReport(model.TimeOf(time.Now()), &dta.Report{Primitive: dta.Append, List: list, Data: data})
	a.send()
}

// send passes complete datagrams to the socket. The kernel's buffer is the only place
// where they wait: what it refuses is lost.
func (a *Agent) send() {
	for a.reporter.ReadyDatagrams() > 0 {
		datagram := a.reporter.Datagram(0)
		if _, err := a.conn.Write(datagram); err != nil {
			a.stats.countUnsent(datagram)
		} else {
			a.stats.Datagrams++
			a.stats.Bytes += model.Bytes(len(datagram))
		}
		a.reporter.Release(1)
	}
}

// readAnswers reads what the collector refuses, until the socket has a deadline.
func (a *Agent) readAnswers() {
	buf := make([]byte, 1<<16)
	for {
		n, err := a.conn.Read(buf)
		if errors.Is(err, errDeadline) || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a refused datagram shows here, too; send counts those
		}
		a.mu.Lock()
		_ = a.reporter.HandleAcks(model.TimeOf(time.Now()), buf[:n]) // counted by the reporter
		a.mu.Unlock()
	}
}

// Close detaches the programs of an agent that does not run. Run does it at its end.
func (a *Agent) Close() (err error) {
	if a.flows != nil {
		err = a.flows.Close()
		a.flows = nil
	}
	a.mu.Lock()
	a.countMirrors() // what Stats returns from here on
	mirrors := a.mirrors
	a.mirrors = nil
	a.mu.Unlock()
	if mirrors != nil {
		err = errors.Join(err, mirrors.Close())
	}
	if a.conn != nil {
		err = errors.Join(err, a.conn.Close())
		a.conn = nil
	}
	return err
}
