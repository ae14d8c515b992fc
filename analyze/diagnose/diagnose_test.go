package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

const (
	class = 3
	µs    = time.Microsecond
	now   = model.Time(10 * time.Millisecond)
	kb    = 1000
)

// bench is a fabric of which some switches have answered.
type bench struct {
	t       testing.TB
	fabric  *topo.Fabric
	intent  *topo.Intent
	reports map[model.NodeID]*provenance.Report
}

func newBench(t testing.TB, f *topo.Fabric, err error, answered ...string) *bench {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, fabric: f, intent: topo.NewIntent(r), reports: map[model.NodeID]*provenance.Report{}}
	for _, name := range answered {
		id := b.id(name)
		b.reports[id] = &provenance.Report{Header: epoch.Header{Switch: id, Snapshot: now, EpochLength: time.Millisecond}, Bytes: 100}
	}
	return b
}

func (b *bench) id(name string) model.NodeID {
	id, ok := b.fabric.ByName(name)
	if !ok {
		b.t.Fatalf("no node %q", name)
	}
	return id
}

// port is "s0>s1".
func (b *bench) port(name string) model.Port {
	from, to, _ := strings.Cut(name, ">")
	ports := b.fabric.Node(b.id(from)).PortsTo(b.id(to))
	if len(ports) == 0 {
		b.t.Fatalf("no port %q", name)
	}
	return model.Port{Node: b.id(from), Port: ports[0]}
}

// flow is "h0>h1".
func (b *bench) flow(name string) model.FlowKey {
	from, to, _ := strings.Cut(name, ">")
	return model.FlowKey{Src: b.fabric.Node(b.id(from)).IPv4, Dst: b.fabric.Node(b.id(to)).IPv4, SrcPort: 10000, DstPort: 4791, Proto: model.UDP}
}

// queue states how a port stands. Behind is what waited when its pauses began.
func (b *bench) queue(port string, queued uint64) {
	p := b.port(port)
	r := b.reports[p.Node]
	r.Ports = append(r.Ports, epoch.Port{Port: p.Port, Priority: class, Queued: queued, Sent: 1000})
	r.PortEpochs = append(r.PortEpochs, epoch.PortEpoch{Epoch: 9, Port: p.Port, Priority: class, Packets: 100})
}

func (b *bench) paused(port string, queued, behind uint64, since time.Duration) *epoch.Pause {
	b.queue(port, queued)
	p := b.port(port)
	r := b.reports[p.Node]
	state := &r.Ports[len(r.Ports)-1]
	state.Paused, state.PauseFrames = true, 3
	r.Pauses = append(r.Pauses, epoch.Pause{Port: p.Port, Priority: class, Began: now.Add(-since), First: now.Add(-since), Behind: behind, Pauses: 1, Time: since})
	return &r.Pauses[len(r.Pauses)-1]
}

// waits puts a flow's packets into queues, each of which holds them for the one
// before.
func (b *bench) waits(flow string, bytes uint64, ports ...string) {
	key := b.flow(flow)
	in, _, _ := strings.Cut(flow, ">")
	for _, name := range ports {
		p := b.port(name)
		r := b.reports[p.Node]
		from := b.fabric.Node(p.Node).PortsTo(b.id(in))[0]
		held := epoch.Held{In: from, Out: p.Port, Priority: class, Packets: uint32(bytes / kb), Bytes: bytes}
		r.Helds = append(r.Helds, held)
		r.Waitings = append(r.Waitings, epoch.Waiting{Held: held, Key: key})
		b.passes(flow, name, 9, uint32(bytes/kb), class)
		in, _, _ = strings.Cut(name, ">")
	}
}

func (b *bench) passes(flow, port string, number, packets uint32, prio model.Priority) {
	p := b.port(port)
	r := b.reports[p.Node]
	r.Flows = append(r.Flows, epoch.Flow{Epoch: number, Out: p.Port, Priority: prio, Key: b.flow(flow), Packets: packets, Bytes: uint64(packets) * kb, Last: r.EpochLength - 1})
}

func (b *bench) graph(victim string) (*provenance.Evidence, *provenance.Graph) {
	e := &provenance.Evidence{Event: poll.Event{Host: 1, Number: 1}}
	for _, id := range b.fabric.Switches() {
		if r := b.reports[id]; r != nil {
			e.Reports = append(e.Reports, r)
		}
	}
	return e, provenance.Build(e, b.flow(victim), b.fabric)
}

func (b *bench) diagnose(victim string) []Verdict {
	b.t.Helper()
	d, err := New(DefaultConfig(b.intent))
	if err != nil {
		b.t.Fatal(err)
	}
	e, g := b.graph(victim)
	return d.Diagnose(Complaint{Event: e.Event, Victim: b.flow(victim)}, e, g)
}

// want checks a verdict. Culprits are those named, in any order.
func (b *bench) want(v Verdict, a Anomaly, c Cause, d Detail, initial string, culprits ...string) {
	b.t.Helper()
	n := v.Named(b.fabric)
	var names []string
	for _, x := range n.Culprits {
		names = append(names, x.String())
	}
	slices.Sort(names)
	slices.Sort(culprits)
	var port model.Port
	if initial != "" {
		port = b.port(initial)
	}
	if v.Anomaly != a || v.Cause != c || v.Detail != d || v.Initial != port || !slices.Equal(names, culprits) {
		b.t.Errorf("verdict %v %v %v at %v by %v (%q); want %v %v %v at %s by %v", v.Anomaly, v.Cause, v.Detail, n.Initial, names, v.Evidence, a, c, d, initial, culprits)
	}
}

func leafSpine(t testing.TB, answered ...string) *bench {
	f, err := topo.LeafSpine(3, 1, 4, topo.DefaultLinks()) // h0-h3 at leaf0, h4-h7, h8-h11
	return newBench(t, f, err, answered...)
}

var all = []string{"leaf0", "leaf1", "leaf2", "spine0"}

// incast: h0 to h3 fill leaf1's port to h4; h4>… the victim h8>h5 only shares
// the way there.
func incast(t testing.TB, answered ...string) *bench {
	b := leafSpine(t, answered...)
	if b.reports[b.id("leaf1")] != nil {
		b.queue("leaf1>h4", 400*kb)
		for _, h := range []string{"h0", "h1", "h2", "h3"} {
			key := b.flow(h + ">h4")
			p := b.port("leaf1>h4")
			r := b.reports[p.Node]
			held := epoch.Held{In: b.port("leaf1>spine0").Port, Out: p.Port, Priority: class, Packets: 100, Bytes: 100 * kb}
			r.Waitings = append(r.Waitings, epoch.Waiting{Held: held, Key: key})
			r.Helds = append(r.Helds, held)
			b.passes(h+">h4", "leaf1>h4", 9, 100, class)
		}
		b.passes("h8>h5", "leaf1>h5", 9, 5, class)
		b.queue("leaf1>h5", 0)
	}
	b.paused("spine0>leaf1", 200*kb, 5*kb, 20*µs)
	b.waits("h8>h5", 10*kb, "leaf2>spine0", "spine0>leaf1")
	b.queue("leaf2>spine0", 10*kb)
	return b
}

// TestEqualIncastIsNoStorm: the paper's weights of four equal flows are about
// nothing, and its rule would call this a storm.
func TestEqualIncastIsNoStorm(t *testing.T) {
	b := incast(t, all...)
	v := b.diagnose("h8>h5")
	b.want(v[0], Backpressure, Flows, MicroBurst, "leaf1>h4", "h0>h4", "h1>h4", "h2>h4", "h3>h4")
	if want := []model.Port{b.port("spine0>leaf1"), b.port("leaf1>h4")}; !slices.Equal(v[0].Path, want) || v[0].Confidence < 0.95 {
		t.Errorf("path %v, confidence %v; want %v, sure", v[0].Path, v[0].Confidence, want)
	}
	_, g := b.graph("h8>h5")
	for _, e := range provenance.Out(g.PortFlow, g.Node(provenance.Queue{Port: b.port("leaf1>h4"), Priority: class})) {
		if e.Weight > 2 {
			t.Errorf("a flow of the incast weighs %v; want about nothing, or this test shows nothing", e.Weight)
		}
	}
}

func storm(t *testing.T) *bench {
	b := leafSpine(t, all...)
	b.paused("spine0>leaf1", 200*kb, 5*kb, 100*µs)
	b.waits("h8>h5", 10*kb, "leaf2>spine0", "spine0>leaf1")
	b.queue("leaf2>spine0", 10*kb)
	b.queue("leaf1>h5", 0)
	b.passes("h8>h5", "leaf1>h5", 9, 5, class)
	b.waits("h0>h4", 300*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h4")
	b.queue("leaf0>spine0", 0)
	return b
}

func TestHostThatPauses(t *testing.T) {
	b := storm(t)
	p := b.paused("leaf1>h4", 300*kb, 5*kb, 200*µs)
	b.want(b.diagnose("h8>h5")[0], Storm, Host, NICStorm, "leaf1>h4")
	// The same with pauses between which it takes packets.
	p.Pauses, p.Began, p.Ended = 9, now.Add(-20*µs), now.Add(-30*µs)
	b.want(b.diagnose("h8>h5")[0], Storm, Host, SlowReceiver, "leaf1>h4")
	// A moment later it is not paused, but was not overfull by itself.
	r := b.reports[b.id("leaf1")]
	for i := range r.Ports {
		r.Ports[i].Paused = false
	}
	p.Ended = now.Add(-5 * µs)
	b.want(b.diagnose("h8>h5")[0], Storm, Host, SlowReceiver, "leaf1>h4")
}

func TestContentionOnTheVictimsWay(t *testing.T) {
	b := leafSpine(t, all...)
	b.queue("leaf2>spine0", 0)
	b.queue("spine0>leaf1", 1*kb)
	b.queue("leaf1>h5", 300*kb)
	b.waits("h8>h5", 20*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	b.waits("h0>h5", 150*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h5")
	b.waits("h6>h5", 130*kb, "leaf1>h5")
	b.queue("leaf0>spine0", 0)
	b.want(b.diagnose("h8>h5")[0], Contention, Flows, MicroBurst, "leaf1>h5", "h0>h5", "h6>h5", "h8>h5")
}

// met says what depth a flow's packets met in a queue in one epoch.
func (b *bench) met(flow, port string, number, packets uint32, depth uint64) {
	b.passes(flow, port, number, packets, class)
	r := b.reports[b.port(port).Node]
	r.Flows[len(r.Flows)-1].Depth = uint64(packets) * depth
}

// TestBurstThatHasLeft: of a burst that the victim's packets waited behind one
// flow is still in the queue when the host complains. Those before it are named,
// too; one that passed an empty queue, or was there long before, is not.
func TestBurstThatHasLeft(t *testing.T) {
	b := leafSpine(t, all...)
	b.queue("leaf1>h5", 70*kb)
	b.waits("h7>h5", 10*kb, "leaf1>h5")
	b.waits("h6>h5", 60*kb, "leaf1>h5")
	b.met("h7>h5", "leaf1>h5", 9, 20, 200)
	b.met("h6>h5", "leaf1>h5", 9, 50, 60)
	for _, h := range []string{"h0", "h1", "h2"} {
		b.met(h+">h5", "leaf1>h5", 9, 100, 200)
	}
	b.met("h9>h5", "leaf1>h5", 9, 300, 0)
	b.met("h10>h5", "leaf1>h5", 7, 400, 300)
	b.want(b.diagnose("h7>h5")[0], Contention, Flows, MicroBurst, "leaf1>h5", "h0>h5", "h1>h5", "h2>h5", "h6>h5", "h7>h5")
	// Whoever found no more in the queue than is there came after they had left.
	r := b.reports[b.id("leaf1")]
	for i := range r.Flows {
		if r.Flows[i].Key == b.flow("h6>h5") {
			r.Flows[i].First = r.EpochLength - 20*µs
		}
	}
	b.want(b.diagnose("h6>h5")[0], Contention, Flows, MicroBurst, "leaf1>h5", "h6>h5", "h7>h5")
}

// TestBurstOfTheEpochs: nothing is left of a burst of unequal flows. The paper's
// weights would name the heaviest alone.
func TestBurstOfTheEpochs(t *testing.T) {
	b := leafSpine(t, all...)
	b.queue("leaf1>h5", 0)
	e := b.reports[b.id("leaf1")].PortEpochs
	e[len(e)-1].Depth = 100 * 200
	b.met("h7>h5", "leaf1>h5", 9, 1, 200)
	b.met("h6>h5", "leaf1>h5", 9, 60, 220)
	b.met("h0>h5", "leaf1>h5", 9, 20, 180)
	b.met("h1>h5", "leaf1>h5", 9, 19, 180)
	v := b.diagnose("h7>h5")
	b.want(v[0], Contention, Flows, v[0].Detail, "leaf1>h5", "h6>h5", "h0>h5", "h1>h5")
	// A flow whose own packets found the queue empty was not held up by it.
	b.met("h4>h5", "leaf1>h5", 9, 5, 0)
	if v := b.diagnose("h4>h5"); v[0].Anomaly != None {
		t.Errorf("verdict %+v of a flow that met nobody; want none", v[0])
	}
}

// TestOnlyWhatWasThenCounts: epochs are long beside what a packet takes. A queue
// that was deep, or paused, before the packet was sent did not hold it up, and a
// flow that had left by then is no culprit.
func TestOnlyWhatWasThenCounts(t *testing.T) {
	const took = 60 * µs
	ago := func(d time.Duration) model.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		wave, pause time.Duration // how long ago they ended; 0: there was none
		want        Anomaly
		culprits    []string
	}{
		"deep then":     {wave: 40 * µs, want: Contention, culprits: []string{"h6>h5", "h0>h5", "h7>h5"}},
		"deep before":   {wave: 300 * µs, want: None},
		"paused then":   {pause: 40 * µs, want: Storm},
		"paused before": {pause: 300 * µs, want: None},
	} {
		t.Run(name, func(t *testing.T) {
			b := leafSpine(t, all...)
			b.queue("leaf1>h5", 0)
			r := b.reports[b.id("leaf1")]
			port := b.port("leaf1>h5").Port
			r.PortEpochs[len(r.PortEpochs)-1].Depth = 100 * 200
			b.met("h7>h5", "leaf1>h5", 9, 5, 200)
			b.met("h6>h5", "leaf1>h5", 9, 60, 200)
			b.met("h0>h5", "leaf1>h5", 9, 20, 200)
			b.met("h1>h5", "leaf1>h5", 9, 20, 200)
			r.Flows[len(r.Flows)-1].Last = 700 * µs // long gone
			if tc.wave > 0 {
				r.Waves = append(r.Waves, epoch.Wave{Port: port, Priority: class, From: ago(tc.wave + 30*µs), To: ago(tc.wave), Most: 200 * kb})
			}
			if tc.pause > 0 {
				r.PortEpochs[len(r.PortEpochs)-1].Paused = 50
				r.Flows[len(r.Flows)-4].Paused = 4
				r.Waves = append(r.Waves, epoch.Wave{Port: port, Priority: class, From: ago(900 * µs), To: ago(800 * µs), Most: 200 * kb})
				r.Pauses = append(r.Pauses, epoch.Pause{Port: port, Priority: class, Began: ago(tc.pause + 30*µs), First: ago(tc.pause + 30*µs), Ended: ago(tc.pause), Pauses: 1})
			}
			d, err := New(DefaultConfig(b.intent))
			if err != nil {
				t.Fatal(err)
			}
			e, g := b.graph("h7>h5")
			v := d.Diagnose(Complaint{Victim: b.flow("h7>h5"), Took: took}, e, g)
			var named []model.FlowKey
			for _, c := range v[0].Culprits {
				named = append(named, c.Flow)
			}
			var want []model.FlowKey
			for _, c := range tc.culprits {
				want = append(want, b.flow(c))
			}
			if v[0].Anomaly != tc.want || !slices.Equal(named, want) {
				t.Errorf("verdict %v by %v (%q); want %v by %v", v[0].Anomaly, named, v[0].Evidence, tc.want, tc.culprits)
			}
		})
	}
}

// TestWhoLeftBeforeThePacketCame: the victim's packets say when they came and
// what they found. A flow that had left by then is no culprit, though it was in
// the queue since they were sent, and a pause of a moment before that queue was
// no reason to wait.
func TestWhoLeftBeforeThePacketCame(t *testing.T) {
	b := leafSpine(t, all...)
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.queue(p, 0)
	}
	r := b.reports[b.id("leaf1")]
	b.met("h8>h5", "leaf1>h5", 9, 5, 100)
	r.Flows[0].First, r.Flows[0].Last = 960*µs, 961*µs
	b.met("h6>h5", "leaf1>h5", 9, 60, 200)
	r.Flows[1].Last = 955 * µs
	b.met("h0>h5", "leaf1>h5", 9, 60, 200)
	r.Flows[2].Last = 940 * µs
	r.PortEpochs[0].Depth = 100 * 200
	r.Waves = append(r.Waves, epoch.Wave{Port: b.port("leaf1>h5").Port, Priority: class, From: now.Add(-300 * µs), To: now.Add(-39 * µs), Most: 900 * kb})
	before := b.reports[b.id("spine0")]
	b.met("h8>h5", "spine0>leaf1", 9, 5, 1)
	before.Flows[0].Paused, before.PortEpochs[0].Paused = 3, 3
	before.Pauses = append(before.Pauses, epoch.Pause{
		Port: b.port("spine0>leaf1").Port, Priority: class, First: now.Add(-45 * µs), Began: now.Add(-45 * µs), Ended: now.Add(-43 * µs), Pauses: 1, Time: 2 * µs,
	})
	r.Meters = append(r.Meters, epoch.Meter{Epoch: 9, In: b.port("leaf1>spine0").Port, Out: b.port("leaf1>h5").Port, Priority: class, Packets: 65, Bytes: 65 * kb})
	d, err := New(DefaultConfig(b.intent))
	if err != nil {
		t.Fatal(err)
	}
	e, g := b.graph("h8>h5")
	v := d.Diagnose(Complaint{Victim: b.flow("h8>h5"), Took: 60 * µs}, e, g)
	b.want(v[0], Contention, Flows, v[0].Detail, "leaf1>h5", "h6>h5", "h8>h5")
}

// TestWhoLeftBeforeThePacketWasSent: the victim has been there for long, so its
// packets do not tell what the late one found. What other flows' packets found
// tells when the last of them had left; who came after the victim's last packet
// was behind it.
func TestWhoLeftBeforeThePacketWasSent(t *testing.T) {
	b := leafSpine(t, all...)
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.queue(p, 0)
	}
	r := b.reports[b.id("leaf1")]
	for i, f := range []struct {
		flow        string
		first, last time.Duration
	}{{"h8>h5", 0, 970 * µs}, {"h6>h5", 0, 930 * µs}, {"h0>h5", 0, 900 * µs}, {"h7>h5", 980 * µs, 990 * µs}} {
		b.met(f.flow, "leaf1>h5", 9, 60, 200)
		r.Flows[i].First, r.Flows[i].Last = f.first, f.last
	}
	r.PortEpochs[0].Depth = 100 * 200
	r.Waves = append(r.Waves, epoch.Wave{Port: b.port("leaf1>h5").Port, Priority: class, From: now.Add(-900 * µs), To: now.Add(-30 * µs), Most: 900 * kb})
	d, err := New(DefaultConfig(b.intent))
	if err != nil {
		t.Fatal(err)
	}
	e, g := b.graph("h8>h5")
	v := d.Diagnose(Complaint{Victim: b.flow("h8>h5"), Took: 60 * µs}, e, g)
	b.want(v[0], Contention, Flows, v[0].Detail, "leaf1>h5", "h6>h5", "h8>h5")
}

func TestNothingIsNothing(t *testing.T) {
	b := leafSpine(t, all...)
	b.waits("h8>h5", 2*kb, "leaf2>spine0", "spine0>leaf1", "leaf1>h5")
	for _, p := range []string{"leaf2>spine0", "spine0>leaf1", "leaf1>h5"} {
		b.queue(p, 2*kb)
	}
	v := b.diagnose("h8>h5")
	if len(v) != 1 || v[0].Anomaly != None || v[0].Confidence < 0.9 {
		t.Errorf("verdicts %+v; want one of nothing, sure", v)
	}
}

// TestMissingAnswersAreNoCause takes away what the way of pauses leads to.
func TestMissingAnswersAreNoCause(t *testing.T) {
	b := incast(t, "leaf0", "leaf2", "spine0")
	v := b.diagnose("h8>h5")
	if len(v) != 1 || v[0].Anomaly != None || v[0].Confidence > 0.2 || !v[0].Open || !strings.Contains(strings.Join(v[0].Evidence, " "), "leaf1") {
		t.Errorf("verdicts %+v without leaf1's answer; want none, unsure, for want of leaf1", v)
	}
	b = incast(t, all...)
	b.reports[b.id("leaf1")].Missing = 1
	b.reports[b.id("leaf1")].Helds = nil
	if v := b.diagnose("h8>h5"); v[0].Anomaly != None || v[0].Confidence > 0.2 {
		t.Errorf("verdicts %+v with half of leaf1's answer; want none, unsure", v)
	}
	b = incast(t, all...)
	b.reports[b.id("leaf0")] = &provenance.Report{Header: epoch.Header{Switch: b.id("leaf0"), Snapshot: now, EpochLength: time.Millisecond}, Missing: 2}
	if v := b.diagnose("h8>h5"); v[0].Anomaly != Backpressure || v[0].Confidence > 0.85 {
		t.Errorf("verdicts %+v with a part missing elsewhere; want the cause, less sure", v)
	}
}

// TestSwitchWithoutFlows is the paper's partial deployment: where contention is
// at a switch that keeps no flows, the port is known and the flows are not.
func TestSwitchWithoutFlows(t *testing.T) {
	b := incast(t, all...)
	r := b.reports[b.id("leaf1")]
	r.Flags |= epoch.NoFlows
	r.Flows, r.Waitings = nil, nil
	v := b.diagnose("h8>h5")
	b.want(v[0], Backpressure, Flows, Unknown, "leaf1>h4")
	if v[0].Confidence > 0.75 {
		t.Errorf("confidence %v without flows; want less", v[0].Confidence)
	}
	// On the victim's way: its queues are those of the intended route.
	r = b.reports[b.id("spine0")]
	r.Flags |= epoch.NoFlows
	r.Flows, r.Waitings = nil, nil
	b.want(b.diagnose("h8>h5")[0], Backpressure, Flows, Unknown, "leaf1>h4")
}

func TestSeveralAtOnce(t *testing.T) {
	b := storm(t)
	b.paused("leaf1>h4", 300*kb, 5*kb, 200*µs)
	b.queue("leaf1>h6", 250*kb)
	b.waits("h1>h6", 250*kb, "leaf0>spine0", "spine0>leaf1", "leaf1>h6")
	v := b.diagnose("h8>h5")
	if len(v) != 2 {
		t.Fatalf("%d verdicts %+v; want two", len(v), v)
	}
	b.want(v[0], Storm, Host, NICStorm, "leaf1>h4")
	b.want(v[1], Backpressure, Flows, Unknown, "leaf1>h6", "h1>h6")
}

// TestTheWaitMayBeginInTheHost: the victim's own port is paused for what another
// flow of its host waits for.
func TestTheWaitMayBeginInTheHost(t *testing.T) {
	b := leafSpine(t, all...)
	b.queue("leaf1>h4", 400*kb)
	b.waits("h6>h4", 300*kb, "leaf1>h4")
	b.waits("h7>h4", 100*kb, "leaf1>h4")
	d, err := New(DefaultConfig(b.intent))
	if err != nil {
		t.Fatal(err)
	}
	e, g := b.graph("h6>h8")
	c := Complaint{Victim: b.flow("h6>h8")}
	if v := d.Diagnose(c, e, g); v[0].Anomaly != None {
		t.Errorf("verdict %+v of a host that was not paused; want none", v[0])
	}
	c.Paused = true
	v := d.Diagnose(c, e, g)
	b.want(v[0], Backpressure, Flows, MicroBurst, "leaf1>h4", "h6>h4", "h7>h4")
	if v[0].Path[0] != (model.Port{Node: b.id("h6"), Port: 1}) {
		t.Errorf("path %v; want it to begin at h6's own port", v[0].Path)
	}
}
