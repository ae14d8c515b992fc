package sonic

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// smallFabric has two leaves, a spine and four hosts.
func smallFabric(t *testing.T) *topo.Fabric {
	f, err := topo.LeafSpine(2, 1, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// startTargets serves targets of a small fabric, and returns those and a client of the first.
func startTargets(t *testing.T) (*Targets, gnmipb.GNMIClient) {
	t.Helper()
	targets, err := ListenTargets(smallFabric(t), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := targets.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	_, address, _ := strings.Cut(targets.List()[0], "=")
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return targets, gnmipb.NewGNMIClient(conn)
}

// counted is a round whose ports have counted n.
func counted(at model.Time, ports int, n uint64) *round {
	r := &round{at: at, ports: make([]portstat.Counters, ports)}
	for i := range r.ports {
		r.ports[i].RxBytes = n
		r.ports[i].Class[3] = portstat.ClassCounters{RxPaused: time.Duration(n) * time.Microsecond, QueueWatermark: model.Bytes(n)}
	}
	return r
}

func pathOf(names ...string) *gnmipb.Path {
	p := &gnmipb.Path{}
	for _, n := range names {
		p.Elem = append(p.Elem, &gnmipb.PathElem{Name: n})
	}
	return p
}

func subscribeTo(target string, mode gnmipb.SubscriptionList_Mode, interval time.Duration, paths ...*gnmipb.Path) *gnmipb.SubscribeRequest {
	list := &gnmipb.SubscriptionList{Prefix: &gnmipb.Path{Target: target}, Mode: mode}
	for _, p := range paths {
		list.Subscription = append(list.Subscription, &gnmipb.Subscription{Path: p, Mode: gnmipb.SubscriptionMode_SAMPLE, SampleInterval: uint64(interval)})
	}
	return &gnmipb.SubscribeRequest{Request: &gnmipb.SubscribeRequest_Subscribe{Subscribe: list}}
}

// TestTargetSamples: every path of a subscription comes once per interval of the switch's clock,
// in its order, with values as strings; rounds between are left out.
func TestTargetSamples(t *testing.T) {
	targets, client := startTargets(t)
	stream, err := client.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_STREAM, 100*time.Millisecond,
		pathOf("COUNTERS", "Ethernet0", "Queues"), pathOf("COUNTERS", "Ethernet*"), pathOf("COUNTERS", "Ethernet0", "SAI_PORT_STAT_IF_IN_OCTETS"))); err != nil {
		t.Fatal(err)
	}
	first := targets.order[0]
	<-first.subscribed
	for i := range uint64(3) { // every 50 ms
		first.publish(counted(start.Add(time.Duration(i)*50*time.Millisecond), len(first.node.Ports), 10*(i+1)))
	}
	if m, err := stream.Recv(); err != nil || !m.GetSyncResponse() {
		t.Fatalf("first message %v, %v; want the sync response", m, err)
	}
	for _, want := range []struct {
		at     model.Time
		number string
	}{{start, "10"}, {start.Add(100 * time.Millisecond), "30"}} {
		var queues, ports map[string]map[string]string
		var field string
		for _, to := range []any{&queues, &ports, &field} {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			note := m.GetUpdate()
			if err := json.Unmarshal(note.GetUpdate()[0].GetVal().GetJsonIetfVal(), to); err != nil || note.GetTimestamp() != int64(want.at) {
				t.Fatalf("%v, time %d; want JSON of %d", err, note.GetTimestamp(), want.at)
			}
		}
		if got := queues["Ethernet0:3"]["SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"]; got != want.number || len(queues) != 8 {
			t.Errorf("watermark %q of %d queues; want %s of 8", got, len(queues), want.number)
		}
		if got := ports["Ethernet4"]["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"]; got != want.number || field != want.number || len(ports) != len(first.node.Ports) {
			t.Errorf("paused %q, octets %q of %d ports; want %s, of %d", got, field, len(ports), want.number, len(first.node.Ports))
		}
	}
}

// TestTargetRefuses: what a target does not have is an error that names it.
func TestTargetRefuses(t *testing.T) {
	targets, client := startTargets(t)
	octets := pathOf("COUNTERS", "Ethernet0", "SAI_PORT_STAT_IF_IN_OCTETS")
	for name, tc := range map[string]struct {
		req  *gnmipb.SubscribeRequest
		code codes.Code
	}{
		"another database":    {subscribeTo("STATE_DB", gnmipb.SubscriptionList_STREAM, time.Second, octets), codes.InvalidArgument},
		"once":                {subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_ONCE, time.Second, octets), codes.Unimplemented},
		"nothing":             {subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_STREAM, time.Second), codes.InvalidArgument},
		"an unknown port":     {subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_STREAM, time.Second, pathOf("COUNTERS", "Ethernet999")), codes.NotFound},
		"an unknown table":    {subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_STREAM, time.Second, pathOf("RATES", "Ethernet0")), codes.NotFound},
		"a path that is long": {subscribeTo("COUNTERS_DB", gnmipb.SubscriptionList_STREAM, time.Second, pathOf("COUNTERS", "Ethernet0", "Queues", "3")), codes.NotFound},
	} {
		stream, err := client.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(tc.req); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != tc.code {
			t.Errorf("%s: %v; want %v", name, err, tc.code)
		}
	}
	get := &gnmipb.GetRequest{Prefix: &gnmipb.Path{Target: "COUNTERS_DB"}, Path: []*gnmipb.Path{octets}}
	if _, err := client.Get(t.Context(), get); status.Code(err) != codes.Unavailable {
		t.Errorf("Get before the first round: %v; want %v", err, codes.Unavailable)
	}
	first := targets.order[0]
	first.publish(counted(start, len(first.node.Ports), 7))
	if answer, err := client.Get(t.Context(), get); err != nil || string(answer.GetNotification()[0].GetUpdate()[0].GetVal().GetJsonIetfVal()) != `"7"` {
		t.Errorf("Get = %v, %v; want \"7\"", answer, err)
	}
	if _, err := ListenTargets(smallFabric(t), netip.MustParseAddrPort("0.0.0.0:0")); err == nil {
		t.Error("targets at 0.0.0.0 without TLS: no error; want one")
	}
}

// TestSlowSubscriberIsBounded: rounds beyond those that wait are skipped and counted.
func TestSlowSubscriberIsBounded(t *testing.T) {
	one := &target{database: database{node: &topo.Node{}}, subscribers: map[chan *round]struct{}{}, subscribed: make(chan struct{})}
	rounds, ok := one.subscribe()
	if !ok {
		t.Fatal("the first subscriber was refused")
	}
	for range maxWaiting + 5 {
		one.publish(counted(start, 0, 0))
	}
	if len(rounds) != maxWaiting || one.skipped != 5 {
		t.Errorf("%d rounds wait, %d skipped; want %d and 5", len(rounds), one.skipped, maxWaiting)
	}
	for range maxSubscribers - 1 {
		if _, ok := one.subscribe(); !ok {
			t.Fatal("a subscriber within the bound was refused")
		}
	}
	if _, ok := one.subscribe(); ok {
		t.Error("one subscriber too many was taken")
	}
	one.unsubscribe(rounds)
	if _, ok := one.subscribe(); !ok {
		t.Error("the place of one that left was not free")
	}
}

// TestMetricsRequest: a gauge per counter, with a point per object, by SAI's numbers.
func TestMetricsRequest(t *testing.T) {
	f := smallFabric(t)
	n := f.Node(f.Switches()[0])
	r := metricsRound{n, counted(start, len(n.Ports), 7)}
	found := map[string]int64{}
	for _, m := range r.request().GetResourceMetrics()[0].GetScopeMetrics()[0].GetMetrics() {
		for _, p := range m.GetGauge().GetDataPoints() {
			found[m.GetName()+" "+p.GetAttributes()[0].GetValue().GetStringValue()] = p.GetAsInt()
		}
	}
	for name, want := range map[string]int64{
		"sai_counter_type_1_stat_0 Ethernet0": 7, "sai_counter_type_1_stat_141 Ethernet4": 7, "sai_counter_type_21_stat_27 Ethernet0|3": 7,
		"sai_counter_type_26_stat_5 Ethernet0|2": 0,
	} {
		if got, ok := found[name]; !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", name, got, ok, want)
		}
	}
	if want := len(n.Ports) * (10 + 8*4 + 8*2 + 8*2); len(found) != want {
		t.Errorf("%d points; want %d", len(found), want)
	}
}

// TestMetricsAreBounded: a collector that is away costs rounds, which are counted, and no memory.
func TestMetricsAreBounded(t *testing.T) {
	f := smallFabric(t)
	m, err := NewMetrics(f, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer m.conn.Close()
	n := f.Node(f.Switches()[0])
	limit := waitingPerSwitch * len(f.Switches())
	for range limit + 3 {
		m.publish(n, counted(start, len(n.Ports), 1))
	}
	if got := m.Stats(); got != (MetricsStats{Skipped: 3}) || len(m.queue) != limit {
		t.Errorf("%+v, %d wait; want 3 skipped, %d waiting", got, len(m.queue), limit)
	}
}
