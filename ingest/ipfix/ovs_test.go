package ipfix

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/ovstest"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// TestOpenVSwitch: Open vSwitch with its userspace datapath sends IPFIX of what passes between two
// hosts: every packet is in one record of its flow, with its bytes; what leaves the switch is counted as egress, and not
// used a second time.
func TestOpenVSwitch(t *testing.T) {
	// Each packet is a flow of its own, and all are sent at once when they expire: the socket's buffer has
	// room for both records of every one.
	const sent, size = 100, 20 + 8 + 2
	v := ovstest.Start(t) // the socket is in the switch's namespace
	loopback := netip.MustParseAddr("127.0.0.1")
	b := newBench(t, loopback)
	events := make(chan portstat.FlowRecord, 10_000)
	b.out.Flow = func(r *portstat.FlowRecord) { events <- *r }
	l, err := (&Config{Listen: netip.AddrPortFrom(loopback, 0)}).OpenSocket(b.decoder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, nil) }()
	v.Run("ovs-vsctl", "--id=@i", "create", "IPFIX", fmt.Sprintf(`targets="%s"`, l.Addr()), "sampling=1", "obs_domain_id=7", "cache_active_timeout=1",
		"--", "set", "bridge", "br0", "ipfix=@i")
	v.Send(sent)

	var packets, bytes uint64
	for packets < sent {
		select {
		case r := <-events:
			if r.Flow.Dst != model.AddrOf(netip.MustParseAddr("10.9.0.2")) || r.Flow.DstPort != 9 {
				continue // neighbour discovery, and answers that the port is closed
			}
			if r.Flow.Src != model.AddrOf(netip.MustParseAddr("10.9.0.1")) || r.Flow.Proto != model.UDP || r.Source != portstat.IPFIX || r.Interval() < 0 {
				t.Errorf("record %+v; want UDP of 10.9.0.1", r)
			}
			packets, bytes = packets+r.Packets, bytes+r.Bytes
		case <-ctx.Done():
			t.Fatalf("%d packets of %d: %+v", packets, sent, l.Counters())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if packets != sent || bytes != sent*size {
		t.Errorf("%d packets of %d bytes; want %d of %d", packets, bytes, sent, sent*size)
	}
	// Its first record has the number 2 after templates with 1, as if one were missing.
	if c := l.Counters(); b.lost("malformed")+b.lost("clock") != 0 || b.lost("missing") > 1 || b.lost("egress") == 0 {
		t.Errorf("losses: %+v; want egress records alone", c.Losses)
	}
}
