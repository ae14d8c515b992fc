package serve

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/realtime"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// incidents asks the API for all of them.
func (b *bed) incidents() []api.Incident {
	b.t.Helper()
	page, err := b.api.Incidents(b.t.Context(), api.IncidentsQuery{})
	if err != nil {
		b.t.Fatal(err)
	}
	return page.Items
}

// found waits for an incident with a cause that touches a node, and returns it.
func (l *lab) found(t *testing.T, node model.NodeID, cause string) api.IncidentDetail {
	t.Helper()
	name := l.Network.Fabric().Node(node).Name
	var one api.IncidentDetail
	eventually(t, cause+" at "+name, func() bool {
		for _, in := range l.b.incidents() {
			if in.Cause != cause {
				continue
			}
			var err error
			if one, err = l.b.api.Incident(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(one.Nodes, name) {
				return true
			}
		}
		return false
	})
	if age := time.Since(one.Begin); age < -time.Second || age > 2*time.Minute {
		t.Errorf("%s began at %v; want a time of the fabric's clocks, just now", one.ID, one.Begin)
	}
	return one
}

// only fails the test for incidents that do not touch a node, if the machine was
// fast enough to show a fabric in its own time: mirrors that leave late seem
// lost. Notices are normal background congestion (docs/demo.md): in an incast,
// flows also meet in queues on their paths.
func (l *lab) only(t *testing.T, node string) {
	t.Helper()
	late := time.Duration(l.late.Load())
	t.Logf("datagrams left up to %v late", late)
	for _, in := range l.b.incidents() {
		one, err := l.b.api.Incident(t.Context(), in.ID)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s %s at %s: %s", in.ID, in.State, in.Cause, in.Location, in.Summary)
		if !slices.Contains(one.Nodes, node) && in.Severity != anomaly.Notice.String() && late < tolerable {
			t.Errorf("%s: %s at %s was invented; want only some at %q", in.ID, in.Cause, in.Location, node)
		}
	}
	if t.Failed() {
		for _, st := range l.b.Health().Stages {
			t.Logf("stage %+v", st)
		}
	}
}

// tolerable is how late a report may leave: a trace waits for longer.
const tolerable = 30 * time.Millisecond

func evidenceSources(in api.IncidentDetail) (list []string) {
	for _, e := range in.Evidence {
		list = append(list, e.Source)
	}
	return list
}

// TestBlackHoleOfALiveFabric: reports of a fabric whose clocks count from 1970
// come in over UDP, and the API reports injected faults with their causes.
func TestBlackHoleOfALiveFabric(t *testing.T) {
	l := newLab(t, start(t, testConfig(t)))
	l.chatter()
	l.Start()
	time.Sleep(realtime.Ahead + 300*time.Millisecond)
	l.only(t, "") // nothing is broken yet
	sw, host, _ := l.middle()
	l.flood(host, func(from model.NodeID, i int) traffic.Flow { return l.flow(from, host, uint16(30000+i)) })
	l.reroute(host, sim.Entry{Switch: sw})
	in := l.found(t, sw, "blackhole")
	if !slices.Contains(evidenceSources(in), "flowsets") {
		t.Errorf("the black hole is known by %v; want flowsets among them", evidenceSources(in))
	}
	l.only(t, l.name(sw))
}

// TestIncastOfALiveFabric: hosts request diagnoses, switches answer with epochs, all over
// UDP. The incast comes again and again, as a machine that is slow may miss one;
// one that is not must not.
func TestIncastOfALiveFabric(t *testing.T) {
	l := newLab(t, start(t, testConfig(t)))
	l.chatter()
	_, host, tor := l.middle()
	const every = time.Second
	for again := range 100 {
		l.flood(host, func(from model.NodeID, i int) traffic.Flow {
			return traffic.Flow{
				Src: from, Dst: host, Start: l.Network.Now().Model().Add(100*time.Millisecond + time.Duration(again)*every), Priority: 3,
				Transport: traffic.RDMA, NoCC: true, Bytes: 200 * model.KB, SrcPort: uint16(40000 + 100*again + i),
			}
		})
	}
	l.Start()
	in := l.found(t, tor, "incast")
	if late := time.Duration(l.late.Load()); in.Begin.After(l.Base.Add(every)) && late < tolerable {
		t.Errorf("the incast of %v is not found, but one of %v, and datagrams left only %v late", l.Base, in.Begin, late)
	}
	if !slices.Contains(evidenceSources(in), "epochs") {
		t.Errorf("the incast is known by %v; want epochs among them", evidenceSources(in))
	}
	l.only(t, l.name(tor))
}

// TestSilentSwitchIsMissed: of a live fabric every switch is heard by every source
// that it has; one that falls silent is named.
func TestSilentSwitchIsMissed(t *testing.T) {
	cfg := testConfig(t)
	set(t, &cfg, "controller.silent_after", "1s")
	l := newLab(t, start(t, cfg))
	quiet, mute := l.Network.Fabric().Switches()[3], atomic.Bool{}
	l.send = func(from model.NodeID, datagram []byte) {
		if from != quiet || !mute.Load() {
			l.report(from, datagram)
		}
	}
	l.chatter()
	l.Start()
	health := func() api.Health {
		h, err := l.b.api.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all := len(l.Network.Fabric().Switches())
	eventually(t, "all switches are heard by flowsets and mirrors, and some by labels", func() bool {
		n := map[string]int{}
		for _, s := range health().Sources {
			n[s.Source] = s.Switches
		}
		return n["flowset"] == all && n["mirror"] == all && n["label"] > 0
	})
	mute.Store(true)
	eventually(t, "the silent switch is named", func() bool { return slices.Contains(health().Silent, l.name(quiet)) })
}
