package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestTunnelsNest encapsulates packets twice and decapsulates them: each header
// comes back as it was, except for marks, which are passed on (RFC 6040).
func TestTunnelsNest(t *testing.T) {
	v4 := model.FlowKey{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2"), Proto: model.IPIP}
	v6 := model.FlowKey{Src: addr("fd00::1"), Dst: addr("fd00::2"), Proto: model.IPIP, V6: true}
	for name, tc := range map[string]struct {
		kind          Kind
		payload, size int32
		ecn, marked   uint8 // of the packet, and of the tunnel at its end
		want          uint8
	}{
		"long":            {KindUDP, 1000, 1042, ECT, ECT, ECT},
		"padded":          {KindUDP, 3, 60, ECT, ECT, ECT},
		"padded tcp":      {KindTCP, 0, 60, NotECT, NotECT, NotECT},
		"marked":          {KindUDP, 1000, 1042, ECT, CE, CE},
		"cannot be":       {KindUDP, 1000, 1042, NotECT, CE, NotECT},
		"marked before":   {KindUDP, 1000, 1042, CE, CE, CE},
		"of another size": {KindAck, 0, 60, NotECT, NotECT, NotECT}, // HPCC's
	} {
		t.Run(name, func(t *testing.T) {
			n := yard(t, nil)
			p := n.sched.workers[0].pool.get()
			p.Kind, p.Payload, p.Size, p.ECN, p.TTL, p.DSCP = tc.kind, tc.payload, tc.size, tc.ecn, 7, 3
			bare := p.unpaddedSize()
			n.sched.workers[0].encapsulate(p, v4)
			if want := max(bare+20, minFrame); p.Size != want || p.TTL != n.cfg.TTL || p.DSCP != 3 || p.ECN != tc.ecn {
				t.Errorf("in one tunnel: %d bytes, TTL %d, DSCP %d, ECN %d; want %d, %d, 3, %d", p.Size, p.TTL, p.DSCP, p.ECN, want, n.cfg.TTL, tc.ecn)
			}
			p.TTL = 33
			n.sched.workers[0].encapsulate(p, v6)
			if want := max(bare+60, minFrame); p.Size != want || p.Extra.Outer[0] != v6 || p.Extra.Outer[1] != v4 || p.header(1).ttl != 33 || p.header(2).ttl != 7 {
				t.Errorf("in two tunnels: %d bytes, headers %v over %v; want %d, IPv6 over IPv4", p.Size, p.Extra.Outer, p.Extra.inner, want)
			}
			p.ECN = tc.marked
			n.sched.workers[0].decapsulate(p)
			if p.TTL != 33 || p.Size != max(bare+20, minFrame) {
				t.Errorf("out of one: TTL %d, %d bytes; want 33, %d", p.TTL, p.Size, max(bare+20, minFrame))
			}
			n.sched.workers[0].decapsulate(p)
			if p.TTL != 7 || p.DSCP != 3 || p.ECN != tc.want || p.Size != tc.size || p.tunnelled() {
				t.Errorf("out of both: TTL %d, DSCP %d, ECN %d, %d bytes; want 7, 3, %d, %d", p.TTL, p.DSCP, p.ECN, p.Size, tc.want, tc.size)
			}
			n.sched.workers[0].decapsulate(p) // does nothing
			if p.TTL != 7 {
				t.Errorf("a packet in no tunnel has TTL %d after another; want 7", p.TTL)
			}
		})
	}
}

// TestTunnelsAreLossless holds that headroom is computed with frames in
// tunnels: an incast through a mux, with the minimum buffer.
func TestTunnelsAreLossless(t *testing.T) {
	plain := fatTree(t, 4, DefaultConfig()).maxFrame()
	for i, to := range []model.Addr{vip4, vip6} {
		n := yardOf(t, func(c *Config) { c.Congestion, c.Buffer, c.AlphaShift = nil, 480*model.KB, 6 })
		s := n.usual()[i]
		s.Backends = s.Backends[:1]
		n.serve(t, s)
		if got := n.maxFrame(); got != plain+40 {
			t.Errorf("the largest frame with tunnels has %d bytes; want %d", got, plain+40)
		}
		for _, src := range []model.NodeID{0, 1, 3, 4, 5} {
			n.add(t, traffic.Flow{Src: src, To: to, Bytes: 1_000_000, Priority: 3, Start: 1000},
				traffic.Flow{Src: src, Dst: 2, Bytes: 1_000_000, Priority: 3, V6: true, Start: 1000})
		}
		n.run(100 * time.Millisecond)
		if n.Finished != 10 || n.Counts.Pauses == 0 {
			t.Errorf("%d flows finished, %d pauses; want 10 and some", n.Finished, n.Counts.Pauses)
		}
		n.clean(t)
	}
}
