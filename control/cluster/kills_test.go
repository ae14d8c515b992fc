package cluster

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store/clickhouse/chtest"
	"github.com/weft-telemetry/weft/stream/nats"
)

var kills = flag.Int("kills", 1, "how often TestKills kills each kind of member, and TestKillsAtRandom any of them")

// killsOfReplay is how many kills one replay has at most: between two events of them there
// are slots with records, so that each disturbs some work.
const killsOfReplay = 3

// takeoverLease is the default of stream.lease.
const takeoverLease = 800 * time.Millisecond

// testCluster is processes on NATS and ClickHouse: two that analyse, two that may lead, and
// one or three brokers.
type testCluster struct {
	t         *testing.T
	server    *chtest.Server
	spec      memberSpec
	analyzers [2]*process
	leaders   [2]*process
	lead      int // the index of the leader
	conn      *client.Conn
	streams   Streams

	brokers       []*process
	brokerConfigs []nats.BrokerConfig
	killed        int // brokers
	storeAway     bool
}

func startServer(t *testing.T) *chtest.Server {
	t.Helper()
	server, err := chtest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Kill() })
	return server
}

func startCluster(t *testing.T, server *chtest.Server, database string, brokers int, lease time.Duration) *testCluster {
	c := &testCluster{t: t, server: server, spec: memberSpec{
		Store: fmt.Sprintf("clickhouse://%s/%s", server.Address(), database), Lease: lease, Commit: 10 * time.Millisecond, Replicas: brokers,
	}}
	var urls []string
	c.brokers, c.brokerConfigs = make([]*process, brokers), make([]nats.BrokerConfig, brokers)
	var routes []string
	for i := range brokers {
		b := nats.BrokerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), MaxStore: model.GiB, Name: fmt.Sprint("b", i), Routes: slices.Clone(routes)}
		if brokers > 1 {
			b.Cluster = "127.0.0.1:0"
		}
		c.brokerConfigs[i] = b
		c.startBroker(i)
		urls, routes = append(urls, "nats://"+c.brokerConfigs[i].Listen), append(routes, "nats://"+c.brokerConfigs[i].Cluster)
	}
	for i := range c.brokerConfigs { // for when they start again
		c.brokerConfigs[i].Routes = routes
	}
	c.spec.URL = strings.Join(urls, ",")
	var err error
	if c.conn, err = nats.Connect(nats.Access{URL: c.spec.URL}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	if err := whenElected(t.Context(), func() (err error) {
		c.streams, err = openStreams(t.Context(), c.conn, brokers, memberBuffer)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i := range c.analyzers {
		c.analyzers[i] = c.start(FlowGroup)
		for range processPartitions / (1 + i) {
			c.analyzers[i].wait(t, "working")
		}
	}
	c.leaders[0] = c.start(LeadGroup)
	c.leaders[0].wait(t, "working")
	c.leaders[1] = c.start(LeadGroup)
	return c
}

func (c *testCluster) start(role string) *process {
	spec := c.spec
	spec.Role = role
	p, _ := startMember(c.t, &spec)
	return p
}

// killLeader kills the leader, and waits until the standby leads. Another standby follows.
func (c *testCluster) killLeader() time.Duration {
	begin := time.Now()
	c.leaders[c.lead].kill()
	dead := c.lead
	c.lead = 1 - c.lead
	c.leaders[c.lead].wait(c.t, "working")
	took := time.Since(begin)
	c.leaders[dead] = c.start(LeadGroup)
	return took
}

// killAnalyzer kills one, and waits until the other has its partitions.
func (c *testCluster) killAnalyzer() time.Duration {
	begin := time.Now()
	c.analyzers[0].kill()
	for range processPartitions / 2 {
		c.analyzers[1].wait(c.t, "working")
	}
	took := time.Since(begin)
	c.analyzers[0], c.analyzers[1] = c.analyzers[1], c.start(FlowGroup)
	// It gets its share before another dies, or there would be nothing to take over.
	for range processPartitions / 2 {
		c.analyzers[1].wait(c.t, "working")
	}
	return took
}

// killBroker kills one of three servers, and starts it again when the others have taken
// what was published without it.
func (c *testCluster) killBroker() time.Duration {
	i := c.killed % len(c.brokers)
	c.killed++
	begin := time.Now()
	c.brokers[i].kill()
	if err := errors.Join(c.streams.Flows.Flush(c.t.Context()), c.streams.Lead.Flush(c.t.Context())); err != nil {
		c.t.Fatal(err)
	}
	took := time.Since(begin)
	c.startBroker(i)
	return took
}

// startBroker starts a server on its files, where it listened before.
func (c *testCluster) startBroker(i int) {
	b := &c.brokerConfigs[i]
	p, line := startMember(c.t, &memberSpec{Role: brokerRole, Broker: *b})
	var url, route string
	_, _ = fmt.Sscan(strings.TrimPrefix(line, "ready"), &url, &route)
	c.brokers[i], b.Listen = p, strings.TrimPrefix(url, "nats://")
	if b.Cluster != "" {
		b.Cluster = strings.TrimPrefix(route, "nats://")
	}
}

// killStore kills ClickHouse, or starts it again after the leader has failed to write.
func (c *testCluster) killStore() time.Duration {
	if c.storeAway = !c.storeAway; c.storeAway {
		c.server.Kill()
		return 0
	}
	c.leaderSays("time=", "write to store failed")
	begin := time.Now()
	if err := c.server.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.leaderSays("applied", "")
	return time.Since(begin)
}

// TestKills kills a member of a kind again and again while a recording passes through a
// cluster: what is stored is what one process finds, without a second incident.
func TestKills(t *testing.T) {
	race.LeaveToPlainRun(t) // TestProcessesFindTheSame kills with the race detector
	want := shipped.alone(t)
	server := startServer(t)
	for i, tc := range []struct {
		name    string
		brokers int
		lease   time.Duration // long where nothing is to be taken over
		events  int           // for each kill
		kill    func(*testCluster) time.Duration
	}{
		{"leader", 1, takeoverLease, 1, (*testCluster).killLeader},
		{"analyzer", 1, takeoverLease, 1, (*testCluster).killAnalyzer},
		{"broker of three", 3, 8 * time.Second, 1, (*testCluster).killBroker},
		{"ClickHouse", 1, 8 * time.Second, 2, (*testCluster).killStore},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var took, answers []time.Duration
			for round := 0; round*killsOfReplay < *kills; round++ {
				c := startCluster(t, server, fmt.Sprintf("kills%d_%d", i, round), tc.brokers, tc.lease)
				a := c.ask()
				c.replay(tc.events*min(killsOfReplay, *kills-round*killsOfReplay), uint64(round), func() {
					if d := a.kill(func() time.Duration { return tc.kill(c) }); d > 0 {
						took = append(took, d)
					}
				})
				answers = append(answers, a.end()...)
				c.end()
				compare(t, want, c.contents())
			}
			slices.Sort(took)
			slices.Sort(answers)
			if len(answers) == 0 {
				t.Fatal("the API answered nothing outside of takeovers")
			}
			t.Logf("%d answers of the API outside of takeovers: median %v, p99 %v", len(answers), answers[len(answers)/2], answers[len(answers)*99/100])
			t.Logf("%d killed; work went on after %v, median %v, at most %v (leases of %v)", len(took), took[0], took[len(took)/2], took[len(took)-1], tc.lease)
		})
	}
}

// killingForwarder is a Publisher that has something killed at some ticks.
type killingForwarder struct {
	*Publisher
	ticks int
	at    []int // in order
	kill  func()
}

// Tick is part of control.Forwarder.
func (f *killingForwarder) Tick(now model.Time) {
	f.Publisher.Tick(now)
	f.ticks++
	for len(f.at) > 0 && f.ticks >= f.at[0] {
		f.at = f.at[1:]
		f.kill()
	}
}

// Kills begin at firstKill, when flows have been reported, and end before the recording's
// last ticks.
const (
	firstKill   = 70
	ticksOfKill = 300
)

// replay has the recording analysed, and calls kill that often while it passes through.
func (c *testCluster) replay(events int, seed uint64, kill func()) {
	t := c.t
	cfg := shipped.config(t)
	controller, err := serve.ControllerConfig(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(seed, 5))
	to := &killingForwarder{Publisher: NewPublisher(&controller, c.streams, t.Context()), kill: kill}
	for i := range events {
		to.at = append(to.at, firstKill+(i*ticksOfKill+random.IntN(ticksOfKill/4))/events)
	}
	r, err := serve.NewForwardingReplay(t.Context(), cfg, nil, to)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(t.Context(), shipped.open(t, &cfg)); err != nil {
		t.Fatal(err)
	}
	if len(to.at) > 0 {
		t.Fatalf("%d kills are left after %d ticks", len(to.at), to.ticks)
	}
	c.awaitLast(to.Publisher)
}

// awaitLast waits until the leader has stored what follows from all that was published.
func (c *testCluster) awaitLast(p *Publisher) {
	run, last := p.Position()
	for batch := uint64(0); batch+1 < last; {
		var of uint64
		if _, err := fmt.Sscanf(c.leaderSays("applied", ""), "applied %d %d", &of, &batch); err != nil || of != run {
			c.t.Fatalf("run %d, %v; want run %d", of, err, run)
		}
	}
}

// leaderSays waits for a line of any leader: one that the machine halted for the time of a
// lease has lost the lead to the other.
func (c *testCluster) leaderSays(prefix, text string) string {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		var line string
		select {
		case line = <-c.leaders[0].lines:
		case line = <-c.leaders[1].lines:
		case <-deadline:
			c.t.Fatalf("no leader said %s… %s in %v", prefix, text, patience)
		}
		if strings.HasPrefix(line, prefix) && strings.Contains(line, text) {
			return line
		}
	}
}

func (c *testCluster) end() {
	for _, p := range slices.Concat(c.leaders[:], c.analyzers[:], c.brokers) {
		p.end(c.t)
	}
}

func (c *testCluster) contents() map[string][]string {
	st, err := openStoreAt(c.t.Context(), c.spec.Store)
	if err != nil {
		c.t.Fatal(err)
	}
	defer st.Close()
	return contents(c.t, st)
}
