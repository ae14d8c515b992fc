package lab_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/dataplane/agent"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// needsRoot skips a test of a user who may not make network namespaces.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and load eBPF programs")
	}
}

// routes are those of four leaves, two spines and eight hosts.
func routes(t *testing.T) *topo.Routes {
	t.Helper()
	f, err := topo.LeafSpine(4, 2, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func agentConfig(t *testing.T, to netip.AddrPort) agent.Config {
	t.Helper()
	cfg := agent.DefaultConfig()
	if err := cfg.SetFlows(200); err != nil {
		t.Fatal(err)
	}
	cfg.To, cfg.Flowset.Slot = to, 50*time.Millisecond
	return cfg
}

// collector assembles what agents report.
type collector struct {
	t    *testing.T
	conn *net.UDPConn
	done sync.WaitGroup
	sets []*flows.Flowset
	bad  []error
}

func newCollector(t *testing.T, key func(model.NodeID) *dta.MAC) *collector {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadBuffer(8 << 20); err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, conn: conn}
	c.done.Go(func() { c.read(key) })
	return c
}

func (c *collector) addr() netip.AddrPort { return c.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (c *collector) read(key func(model.NodeID) *dta.MAC) {
	assembler, err := flows.NewAssembler(flows.DefaultConfig())
	if err != nil {
		c.t.Error(err)
		return
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := c.conn.Read(buf)
		if err != nil {
			c.sets = assembler.Flush(c.sets)
			return
		}
		var r dta.Reader
		if err := r.Reset(buf[:n]); err != nil {
			c.bad = append(c.bad, err)
			continue
		}
		if key != nil && !key(r.Header().Reporter).Verify(buf[:n]) {
			c.bad = append(c.bad, dta.ErrMAC)
			continue
		}
		var rep dta.Report
		for r.Next(&rep) {
			if c.sets, err = assembler.AddChunk(model.TimeOf(time.Now()), rep.Data, c.sets); err != nil {
				c.bad = append(c.bad, err)
			}
		}
	}
}

// flowsets returns all that arrived within a second.
func (c *collector) flowsets() []*flows.Flowset {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		c.t.Fatal(err)
	}
	c.done.Wait()
	for _, err := range c.bad {
		c.t.Errorf("datagram: %v", err)
	}
	return c.sets
}

// runFor runs agents and traffic, until the traffic is done and the agents have reported
// all of it.
func runFor(t *testing.T, l *lab.Lab, traffic *lab.Traffic, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	awaitCounting(t, l)
	sending, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	traffic.Run(sending)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// awaitCounting waits until the agents of all switches count.
func awaitCounting(t *testing.T, l *lab.Lab) {
	t.Helper()
	began := time.Now()
	for _, id := range l.Fabric().Switches() {
		for l.Agent(id).Stats().Exported.Slots == 0 {
			if time.Since(began) > patience {
				t.Fatalf("%s: no slot has ended within %v", l.Fabric().Node(id).Name, patience)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// TestFlowsetsEqualBooks sends real traffic through the kernels of a fabric, and compares
// the flows that are decoded from its switches with the books of the generator: packets of
// every flow, at every switch of a path that the routes intend.
func TestFlowsetsEqualBooks(t *testing.T) {
	race.LeaveToPlainRun(t) // under the detector, agents beside other tests are often late for packets
	needsRoot(t)
	macs := map[model.NodeID]*dta.MAC{}
	key := func(id model.NodeID) *dta.MAC { return macs[id] }
	r := routes(t)
	for _, n := range r.Fabric().Nodes() {
		macs[n.ID] = dta.NewMAC(1, []byte{byte(n.ID)})
	}
	for try := 1; !booksEqual(t, r, key); try++ {
		if try == 5 {
			t.Fatal("in five runs agents missed packets")
		}
	}
}

// booksEqual reports false where an agent had to miss packets and says so, as on a machine
// that has no time for it: nothing can be compared then.
func booksEqual(t *testing.T, r *topo.Routes, key func(model.NodeID) *dta.MAC) bool {
	t.Helper()
	c := newCollector(t, func(id model.NodeID) *dta.MAC { return dta.NewMAC(1, []byte{byte(id)}) })
	l, err := lab.Up(lab.Config{
		Routes: r, Agent: agentConfig(t, c.addr()), Key: key,
		List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLab(t, l)
	traffic, err := lab.NewTraffic(l, lab.TrafficConfig{UDP: 1, TCP: 1, IPv4: true, IPv6: true, Pause: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	books := traffic.Flows()
	defer traffic.Close()
	runFor(t, l, traffic, time.Second)
	sets := c.flowsets()
	for _, id := range r.Fabric().Switches() {
		s := l.Agent(id).Stats()
		if s.Exported.Missed > 0 {
			t.Logf("%s: %d packets missed", r.Fabric().Node(id).Name, s.Exported.Missed)
			return false
		}
		for _, lost := range s.Losses() {
			if lost.Count != 0 {
				t.Errorf("%s: %d %s lost: %s; want none", r.Fabric().Node(id).Name, lost.Count, lost.Unit, lost.Reason)
			}
		}
	}
	seen := map[model.FlowKey]map[topo.Hop]uint64{}
	for _, fs := range sets {
		decoded := flows.SingleDecode(fs)
		if !decoded.Complete() {
			t.Errorf("switch %d slot %d is not decoded", fs.Switch, fs.Slot)
		}
		for _, rec := range decoded.Records {
			if seen[rec.Key] == nil {
				seen[rec.Key] = map[topo.Hop]uint64{}
			}
			seen[rec.Key][topo.Hop{Node: fs.Switch, In: rec.In, Out: rec.Out}] += rec.Packets
		}
	}
	packets := uint64(0)
	for _, c := range traffic.Connections() {
		if errors.Is(c.Err(), lab.ErrSentAgain) {
			t.Log(c.Err())
			return false
		}
		if c.Err() != nil || c.Sent.Load() == 0 || c.Received.Load() != c.Sent.Load() || c.Damaged.Load() {
			t.Errorf("connection of %d to %d: %d bytes sent, %d received, damaged: %v, %v; want the same", c.From, c.To, c.Sent.Load(), c.Received.Load(), c.Damaged.Load(), c.Err())
		}
	}
	for _, f := range books {
		if f.Sent.Load() == 0 || f.Received.Load() != f.Sent.Load() {
			t.Errorf("%v: %d packets sent, %d received; want all", f.Key, f.Sent.Load(), f.Received.Load())
		}
		packets += f.Sent.Load()
		checkPath(t, r, f, seen[f.Key])
	}
	t.Logf("%d flows, %d packets", len(books), packets)
	return true
}

func closeLab(t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := lab.Remove(); err != nil || len(left) > 0 {
		t.Errorf("after Close: Remove = %v, %v; want nothing left", left, err)
	}
	if _, err := os.Stat("/run/weft-lab"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: /run/weft-lab: %v; want it removed", err)
	}
}

// TestOneLabAtATime: while a lab is up, another is refused and changes nothing. One that was removed under its
// process's feet does not remove the next one.
func TestOneLabAtATime(t *testing.T) {
	needsRoot(t)
	f, err := topo.LeafSpine(1, 1, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := lab.Config{
		Routes: r, Agent: agentConfig(t, netip.MustParseAddrPort("127.0.0.1:9")), List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	}
	names := func() (list []string) {
		for _, n := range f.Nodes() {
			if _, err := os.Stat("/run/netns/weft-" + n.Name); err == nil {
				list = append(list, n.Name)
			}
		}
		return list
	}
	first, err := lab.Up(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Up(cfg); err == nil || !strings.Contains(err.Error(), "another lab is up") {
		t.Errorf("a second Up = %v; want an error that says so", err)
	}
	if n := names(); len(n) != len(f.Nodes()) {
		t.Errorf("after it %v is left of the first; want all of it", n)
	}
	if removed, err := lab.Remove(); err != nil || len(removed) != len(f.Nodes()) {
		t.Errorf("Remove = %v, %v; want the first lab", removed, err)
	}
	second, err := lab.Up(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if n := names(); len(n) != len(f.Nodes()) {
		t.Errorf("the end of the first leaves %v of the second; want all of it", n)
	}
	closeLab(t, second)
}

// checkPath compares where a flow was seen with the paths that are intended, and its
// packets with those that were sent.
func checkPath(t *testing.T, r *topo.Routes, f *lab.Flow, seen map[topo.Hop]uint64) {
	t.Helper()
	paths, all := r.Paths(f.From, f.Key.Dst, 100)
	if !all {
		t.Fatalf("%v has more than 100 paths", f.Key)
	}
	for _, path := range paths {
		match, switches := true, 0
		for _, h := range path {
			if r.Fabric().Node(h.Node).Role == topo.Host {
				continue
			}
			switches++
			match = match && seen[h] == f.Sent.Load()
		}
		if match && len(seen) == switches {
			return
		}
	}
	t.Errorf("%v: %d packets sent, seen at %v; want as many at all switches of one of %v", f.Key, f.Sent.Load(), seen, paths)
}
