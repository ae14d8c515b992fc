package tracewatch

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

const forever = model.Time(math.MaxInt64)

// lab makes mirrors of packets in a fat-tree of sixteen hosts.
type lab struct {
	fabric *topo.Fabric
	routes *topo.Routes
	intent *topo.Intent
}

func newLab(t testing.TB) *lab {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &lab{f, r, topo.NewIntent(r)}
}

func (l *lab) config() Config {
	c := DefaultConfig(l.intent)
	c.Trace.CloseAfter, c.Trace.RouteSettle, c.Trace.MaxTraces = time.Millisecond, 0, 1<<12
	c.Period, c.Periods = 10*time.Millisecond, 10
	return c
}

func (l *lab) watch(t testing.TB, cfg Config, marker Marker, out Output) *Watch {
	t.Helper()
	w, err := New(cfg, marker, out)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fataler is a test, of testing or of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// sent is a packet: who sends it to whom, what tells it apart, how many hops
// see it (0: all), and why.
type sent struct {
	from, to model.NodeID
	port, id uint16
	hops     int
	why      mirror.Reasons
	at       model.Time
}

// mirrors are those of all hops, a microsecond apart.
func (l *lab) mirrors(t fataler, s sent) (list []mirror.Mirror) {
	t.Helper()
	key := model.FlowKey{Src: l.fabric.Node(s.from).IPv4, Dst: l.fabric.Node(s.to).IPv4, SrcPort: s.port, DstPort: 80, Proto: model.TCP}
	path, err := l.routes.Path(key, s.from)
	if err != nil {
		t.Fatal(err)
	}
	for i, hop := range path[1 : len(path)-1] {
		if s.hops > 0 && i == s.hops {
			break
		}
		ip := packet.IPv4{Length: 1486, ID: s.id, TTL: uint8(64 - i), Proto: model.TCP, Src: key.Src.V4(), Dst: key.Dst.V4()}
		b := ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil))
		b = packet.TCP{SrcPort: s.port, DstPort: 80, Flags: uint16(packet.ACK)}.AppendTo(b)
		list = append(list, mirror.Mirror{
			Reasons: s.why | mirror.Sample, Switch: hop.Node, In: hop.In, Out: hop.Out, Time: s.at + model.Time(1000*i), Length: 1500, Frame: append(b, make([]byte, 60)...),
		})
	}
	return list
}

// send shows a watch the mirrors of a packet, as reports of the list that its
// switches choose.
func (l *lab) send(t testing.TB, w *Watch, s sent) {
	t.Helper()
	for _, m := range l.mirrors(t, s) {
		var p packet.Packet
		if err := p.Parse(m.Frame); err != nil {
			t.Fatal(err)
		}
		list := mirror.Shard(&p.Innermost().Key, uint32(w.cfg.Analyzers))
		if err := w.Partition(int(list)).IngestReport(m.Time, m.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// count is a total of all complete periods.
func count(t testing.TB, w *Watch, name string) (n uint64) {
	t.Helper()
	list, err := w.QueryCounter(name, 0, forever)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		n += p.Count
	}
	return n
}

// finish ends a watch when nothing more can come.
func finish(w *Watch) {
	for _, f := range w.partitions {
		f.a.Assembler.Flush()
	}
	w.Finish()
}
