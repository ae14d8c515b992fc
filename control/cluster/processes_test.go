package cluster

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream/nats"
)

// TestProcessesFindTheSame replays a recording through processes on NATS, of which two
// analyse and one leads. SIGKILL ends each of them, several times; another follows.
func TestProcessesFindTheSame(t *testing.T) {
	want := shipped.alone(t)
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 2))
	broker, err := nats.StartBroker(nats.BrokerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), MaxStore: model.GiB})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	conn, err := nats.Connect(nats.Access{URL: broker.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := openStreams(t.Context(), conn, 1, memberBuffer)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	start := func(role string) *process {
		p, _ := startMember(t, &memberSpec{
			Role: role, URL: broker.URL(), Store: path, Lease: 400 * time.Millisecond, Commit: DefaultCommit, Replicas: 1,
		})
		return p
	}
	roles := []string{FlowGroup, FlowGroup, LeadGroup}
	members := make([]*process, len(roles))
	for i, role := range roles {
		members[i] = start(role)
	}
	cfg := shipped.config(t)
	controller, err := serve.ControllerConfig(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	pub := NewPublisher(&controller, s, t.Context())
	r, err := serve.NewForwardingReplay(t.Context(), cfg, nil, pub)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	replayed := make(chan error, 1)
	in := shipped.open(t, &cfg)
	go func() { _, err := r.Run(t.Context(), in); replayed <- err }()
	for range 6 {
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond) // when it dies does not matter
		i := random.IntN(len(roles))
		members[i].kill()
		members[i] = start(roles[i])
	}
	if err := <-replayed; err != nil {
		t.Fatal(err)
	}
	run, last := pub.Position()
	for batch := uint64(0); batch+1 < last; {
		var of uint64
		if _, err := fmt.Sscanf(members[2].wait(t, "applied"), "applied %d %d", &of, &batch); err != nil || of != run {
			t.Fatalf("run %d, %v; want run %d", of, err, run)
		}
	}
	for _, p := range members {
		p.end(t)
	}
	st, err := openStoreAt(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	compare(t, want, contents(t, st))
}
