package ns3

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
)

// small is a run that ends well after its last packet has arrived.
func small() Config {
	return Config{
		K: 4, Rate: 100 * model.Gbps, Delay: time.Microsecond, Payload: 1000,
		Flows: []Flow{
			{Src: 0, Dst: 1, Bytes: 2500, Rate: model.Gbps},                                         // same rack
			{Src: 2, Dst: 0, Bytes: 1, Start: 3 * time.Microsecond, Rate: model.Gbps},               // same pod
			{Src: 0, Dst: 15, Bytes: 100_000, Start: 1500 * time.Nanosecond, Rate: 40 * model.Gbps}, // across
		},
		Stop: 100 * time.Microsecond,
	}
}

func TestProgramGetsEveryArgument(t *testing.T) {
	c := small()
	wantArgs := []string{"--k=4", "--rate=100000000000", "--delay=1000", "--payload=1000", "--stop=100000", "--arrivals=false", "--routed=false"}
	if diff := cmp.Diff(wantArgs, c.args()); diff != "" {
		t.Errorf("arguments differ (-want +got):\n%s", diff)
	}
	wantFlows := "0 1 2500 0 1000000000\n2 0 1 3000 1000000000\n0 15 100000 1500 40000000000\n"
	if diff := cmp.Diff(wantFlows, string(c.appendFlows(nil))); diff != "" {
		t.Errorf("flows differ (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	const line = `{"packet_hops":70,"sent":14,"received":13,"dropped":1,"used_ports":9,"events":323,` +
		`"simulated_ns":1000000,"wall_ns":4738764,"cpu_ns":736475,"peak_memory":"17387520B","arrived_ps":[5,-1]}` + "\n"
	want := Result{
		PacketHops: 70, Sent: 14, Received: 13, Dropped: 1, UsedPorts: 9, Events: 323,
		Simulated: time.Millisecond, Wall: 4738764, CPU: 736475, PeakMemory: 17387520, Arrived: []int64{5, -1},
	}
	if got, err := parse([]byte(line)); err != nil || !cmp.Equal(got, want) {
		t.Errorf("parse(%s) = %+v, %v; want %+v, nil", line, got, err, want)
	}
	for name, in := range map[string]string{
		"nothing":         "",
		"no JSON":         "assert failed\n",
		"an unknown word": `{"packets":3}`,
	} {
		if got, err := parse([]byte(in)); err == nil {
			t.Errorf("parse of %s, %q = %+v, nil; want an error", name, in, got)
		}
	}
}

func TestCheckNamesTheField(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"k 5, want":                       func(c *Config) { c.K = 5 },
		"k 66, want":                      func(c *Config) { c.K = 66 },
		"rate 0b/s, want":                 func(c *Config) { c.Rate = 0 },
		"delay -1ns, want":                func(c *Config) { c.Delay = -1 },
		"payload 0B, want":                func(c *Config) { c.Payload = 0 },
		"payload 65.508KB, want":          func(c *Config) { c.Payload = 65508 },
		"stop 0s, want":                   func(c *Config) { c.Stop = 0 },
		"flow 1 from host 16 to 0, want":  func(c *Config) { c.Flows[1].Src = 16 },
		"flow 0 from host 0 to -1, want":  func(c *Config) { c.Flows[0].Dst = -1 },
		"flow 2 from host 15 to 15, want": func(c *Config) { c.Flows[2].Src = 15 },
		"flow 0 of 0B, want":              func(c *Config) { c.Flows[0].Bytes = 0 },
		"flow 0 starts at -1ns, want":     func(c *Config) { c.Flows[0].Start = -1 },
		"flow 0 at 0b/s, want":            func(c *Config) { c.Flows[0].Rate = 0 },
		"flow 1 leaves by ports 0 and 2":  func(c *Config) { c.Routed, c.Flows[1].Up[1] = true, 2 },
	} {
		c := small()
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "ns3: "+want) {
			t.Errorf("Run = %v; want an error beginning with %q", err, "ns3: "+want)
		}
	}
	if err := small().check(); err != nil {
		t.Errorf("check(%+v) = %v; want nil", small(), err)
	}
}

// needNS3 leaves a test out where ns-3 is not installed. What Run does around
// ns-3 is tested everywhere, with a compiler made of shell.
func needNS3(t *testing.T) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("libns3-dev is not installed: make test and make bench install it (%v)", err)
	}
}

func TestPacketsAreConserved(t *testing.T) {
	needNS3(t)
	c := small()
	got, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var packets, hops uint64
	for _, f := range c.Flows {
		n := uint64((f.Bytes + c.Payload - 1) / c.Payload)
		packets += n
		hops += n * pathLength(c.K, f)
	}
	if got.Sent != packets || got.Received != packets || got.Dropped != 0 {
		t.Errorf("sent %d, received %d, dropped %d packets; want %d, %[4]d, 0", got.Sent, got.Received, got.Dropped, packets)
	}
	if got.PacketHops != hops {
		t.Errorf("packet-hops = %d; want %d, packets × links of their paths", got.PacketHops, hops)
	}
	if got.Simulated != c.Stop || got.Wall <= 0 || got.CPU <= 0 || got.Events < hops || got.PeakMemory <= 0 {
		t.Errorf("%+v; want %v simulated, an event or more for every hop, and times and memory above 0", got, c.Stop)
	}
}

// pathLength is the number of links from source to destination.
func pathLength(k int, f Flow) uint64 {
	switch rack, pod := k/2, k*k/4; {
	case f.Src/rack == f.Dst/rack:
		return 2
	case f.Src/pod == f.Dst/pod:
		return 4
	default:
		return 6
	}
}

// TestStoreAndForward stops the run just before and just after a lone packet
// must have arrived: on each of 6 links 1,030 bytes at 100 Gb/s take 82.4 ns,
// and then 1 µs of delay, 6.4944 µs together.
func TestStoreAndForward(t *testing.T) {
	needNS3(t)
	c := small()
	c.Flows = []Flow{{Src: 0, Dst: 15, Bytes: 1000, Rate: model.Gbps}}
	for stop, want := range map[time.Duration]uint64{6494: 0, 6495: 1} {
		c.Stop = stop
		if got, err := Run(t.Context(), c); err != nil || got.Received != want {
			t.Errorf("after %v: received %d packets, %v; want %d", stop, got.Received, err, want)
		}
	}
}

// A lone flow's last packet arrives when its path and its rate say; one whose packets are
// still on their way has not arrived.
func TestArrivals(t *testing.T) {
	needNS3(t)
	c := small()
	c.Arrivals, c.Stop = true, 10*time.Microsecond
	c.Flows = []Flow{{Src: 0, Dst: 15, Bytes: 2000, Rate: 80 * model.Gbps}, {Src: 4, Dst: 5, Bytes: 1000, Start: 9 * time.Microsecond, Rate: model.Gbps}}
	got, err := Run(t.Context(), c)
	// The second packet leaves 1,000 bytes at 80 Gb/s after the first.
	if want := []int64{6_494_400 + 100_000, -1}; err != nil || !slices.Equal(got.Arrived, want) {
		t.Errorf("arrived %v, %v; want %v", got.Arrived, err, want)
	}
}

// TestFlowsKeepTheirPaths: one flow across pods of a k=4 fat-tree uses the 6
// ports of one path. Many flows between the same two hosts use all paths: 1
// port of the host, then 2, 4, 4, 2 and 1 of switches.
func TestFlowsKeepTheirPaths(t *testing.T) {
	needNS3(t)
	for flows, want := range map[int]uint64{1: 6, 64: 14} {
		c := small()
		c.Flows = nil
		for range flows {
			c.Flows = append(c.Flows, Flow{Src: 0, Dst: 15, Bytes: 10_000, Rate: model.Gbps})
		}
		c.Stop = time.Millisecond
		got, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got.UsedPorts != want || got.Received != uint64(10*flows) {
			t.Errorf("%d flows used %d ports and received %d packets; want %d and %d", flows, got.UsedPorts, got.Received, want, 10*flows)
		}
	}
}

// Two flows that share a port of their path are late by a packet; by different ports they
// are not.
func TestRoutedFlowsTakeTheirPorts(t *testing.T) {
	needNS3(t)
	const onWire = 82_400 // ps, of 1,030 bytes
	for _, tc := range []struct {
		up   [2][2]int
		late int64
	}{
		{[2][2]int{{0, 1}, {0, 1}}, onWire},
		{[2][2]int{{0, 1}, {1, 1}}, 0}, // another leaf
		{[2][2]int{{1, 0}, {1, 0}}, onWire},
	} {
		c := small()
		c.Arrivals, c.Routed = true, true
		c.Flows = []Flow{
			{Src: 0, Dst: 14, Bytes: 1000, Rate: model.Gbps, Up: tc.up[0]},
			{Src: 1, Dst: 12, Bytes: 1000, Rate: model.Gbps, Up: tc.up[1]},
		}
		got, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if min(got.Arrived[0], got.Arrived[1]) != 6_494_400 || max(got.Arrived[0], got.Arrived[1]) != 6_494_400+tc.late {
			t.Errorf("ports up %v: arrived %v; want one after 6494400 ps and one %d later", tc.up, got.Arrived, tc.late)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	needNS3(t)
	if _, err := build(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	c := small()
	c.Flows[2].Bytes, c.Stop = 1000*model.GB, time.Hour // it would outlast the test
	if _, err := Run(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run of a long simulation with 200 ms = %v; want %v", err, context.DeadlineExceeded)
	}
}
