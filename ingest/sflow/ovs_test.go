package sflow

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	goflow "github.com/netsampler/goflow2/v2/decoders/sflow"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/internal/ovstest"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// TestOpenVSwitch: a real exporter, Open vSwitch with its userspace datapath, forwards between
// two hosts in network namespaces. Its samples have the port pair and the flow, scale
// to what was sent within their error, and its counters agree with the sender.
func TestOpenVSwitch(t *testing.T) {
	const sent, sampling = 4000, 8
	v := ovstest.Start(t)
	indexes := [2]uint32{v.Index("p1"), v.Index("p2")}
	v.Run("ip", "link", "add", "mgmt", "type", "veth", "peer", "name", "mgmt-peer")
	v.Run("ip", "addr", "add", "10.9.9.1/24", "dev", "mgmt")
	v.Run("ip", "link", "set", "mgmt", "up")

	// The socket is in the switch's namespace.
	got := &bench{}
	f := &source.Fabric{}
	port := func(name string) (model.PortID, bool) {
		return map[string]model.PortID{"p1": 1, "p2": 2}[name], name == "p1" || name == "p2"
	}
	f.Switches = []source.Switch{{Name: "ovs", Ports: 2, Port: port, Rate: func(model.PortID) model.Rate { return 100e9 }}}
	var err error
	if f.Identity, err = identity.New([]identity.Switch{{Name: "ovs", Addrs: []netip.Addr{netip.MustParseAddr("10.9.9.1")}, Ports: 2, Port: port}}); err != nil {
		t.Fatal(err)
	}
	named := make(chan struct{}, 1)
	events := make(chan func(), 1000) // what the decoder's goroutine saw, for this one
	cfg := &Config{Listen: netip.MustParseAddrPort("127.0.0.1:0")}
	d, err := cfg.NewDecoder(f, source.Output{
		Reading: func(r *portstat.Reading) { one := *r; events <- func() { got.readings = append(got.readings, one) } },
		Sample:  func(s *portstat.Sample) { one := *s; events <- func() { got.samples = append(got.samples, one) } },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := cfg.OpenSocket(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var theirs int
	ended := make(chan error, 1)
	go func() {
		ended <- l.Run(ctx, func(_ model.Time, _, _ netip.AddrPort, data []byte, _ bool) {
			var p goflow.Packet
			if err := goflow.DecodeMessageVersion(bytes.NewBuffer(data), &p); err != nil {
				t.Errorf("goflow2: %v", err)
			}
			theirs += len(p.Samples)
			_, first := f.Identity.PortByIndex(0, indexes[0])
			_, second := f.Identity.PortByIndex(0, indexes[1])
			if first && second {
				select {
				case named <- struct{}{}:
				default:
				}
			}
		})
	}()
	v.Run("ovs-vsctl", "--id=@s", "create", "sflow", "agent=mgmt", fmt.Sprintf(`target="%s"`, l.Addr()), "header=128", fmt.Sprintf("sampling=%d", sampling), "polling=1",
		"--", "set", "bridge", "br0", "sflow=@s")
	wait(t, ctx, events, func() bool { return len(named) > 0 }, "the names of both interfaces")
	v.Send(sent)

	flow := func(s *portstat.Sample) bool {
		return s.In == 1 && s.Out == 2 && s.Flow.Dst == model.AddrOf(netip.MustParseAddr("10.9.0.2")) && s.Flow.DstPort == 9 && s.Flow.Proto == model.UDP
	}
	counted := func(p model.PortID) (packets uint64) {
		for i := range got.readings {
			if got.readings[i].Port.Port == p {
				packets += got.readings[i].RxPackets
			}
		}
		return packets
	}
	wait(t, ctx, events, func() bool { return counted(1) >= sent }, "counters of all packets")
	// The agent sends samples within a second: two rounds of counters later all have come.
	rounds := len(got.readings) + 2*3
	wait(t, ctx, events, func() bool { return len(got.readings) >= rounds }, "later counters")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	drain(events)
	var estimate float64
	for i := range got.samples {
		if s := &got.samples[i]; flow(s) {
			estimate += float64(s.Rate)
		}
	}
	// A sum of n samples of 1:N has the error sqrt(sent*(N-1)); five of them are one in a million.
	if limit := 5 * math.Sqrt(sent*(sampling-1)); math.Abs(estimate-sent) > limit {
		t.Errorf("samples scale to %.0f packets from p1 to p2; want %d within %.0f", estimate, sent, limit)
	}
	c := l.Counters()
	for _, l := range c.Losses {
		if l.Count > 0 && !l.Expected && l.Reason != "unknown port" {
			t.Errorf("%d %s (%s); want none", l.Count, l.Reason, l.About)
		}
	}
	if c.In != uint64(theirs) {
		t.Errorf("%d samples; goflow2 finds %d", c.In, theirs)
	}
}

// wait takes events until a condition holds.
func wait(t *testing.T, ctx context.Context, events chan func(), ok func() bool, what string) {
	t.Helper()
	for !ok() {
		select {
		case f := <-events:
			f()
		case <-time.After(10 * time.Millisecond): // the condition may depend on others
		case <-ctx.Done():
			t.Fatalf("no %s: %v", what, ctx.Err())
		}
	}
}

func drain(events chan func()) {
	for {
		select {
		case f := <-events:
			f()
		default:
			return
		}
	}
}
