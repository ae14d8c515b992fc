package siege

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

// attack is one on the reports of a service, on its API, or both.
type attack struct {
	name    string
	lies    []string
	n       int  // of each kind at once; more follow, at a rate
	insider bool // they come from a switch that was taken over
	web     func(m *mob)
}

// many is more than a table of the service has room for.
var many = race.Less(20_000, 3000)

// attacks has every kind of lies.
var attacks = []attack{
	{name: "a switch outside the topology", lies: []string{"flowsets of unknown switches"}, n: 300},
	{name: "a switch outside the topology, reported by one inside", lies: []string{"flowsets of unknown switches"}, n: 300, insider: true},
	{name: "tables of millions of cells", lies: []string{"flowset bombs"}, n: 100},
	{name: "tables of millions of cells, by an insider", lies: []string{"flowset bombs"}, n: 100, insider: true},
	{name: "more sources than a table has room for", lies: []string{"invented sources"}, n: many},
	{name: "more sources than a table has room for, by an insider", lies: []string{"invented sources"}, n: many, insider: true},
	{name: "lying flowsets", lies: []string{"lying flowsets"}, n: 1000},
	{name: "mirrors of other centuries", lies: []string{"mirrors of 1677 and 2262"}, n: 500},
	{name: "mirrors of other centuries, by an insider", lies: []string{"mirrors of 1677 and 2262"}, n: 500, insider: true},
	{name: "a forged loop", lies: []string{"mirrors of a loop"}, n: 800},
	{name: "forged mirrors over ERSPAN", lies: []string{"ERSPAN noise", "ERSPAN lies"}, n: 500},
	{name: "forged drops and queues over INT", lies: []string{"INT noise", "INT lies"}, n: 1000},
	{name: "sequences moved from a spoofed source", lies: []string{"moved sequences"}, n: 500},
	{name: "replays", lies: []string{"replayed datagrams", "replayed by a stranger", "mutated datagrams"}, n: 500},
	{name: "epochs with bad records", lies: []string{"epochs with bad records"}, n: many},
	{name: "epochs with bad records, by an insider", lies: []string{"epochs with bad records"}, n: many, insider: true},
	{name: "any number of answers to one request", lies: []string{"references to one event"}, n: many, insider: true},
	{name: "lying epochs, labels and requests", lies: []string{"lying epochs", "lying labels", "requests of invented hosts"}, n: 500},
	{name: "lists of others", lies: []string{"other switches' lists", "prototype headers", "random bytes"}, n: 500},
	{name: "idle and slow connections", web: func(m *mob) { m.idle(700); m.silent(300); m.slow(100); m.streams(100) }},
	{name: "wrong tokens", web: func(m *mob) { m.guesses(4) }},
}

// TestEveryAttackHasItsKinds: no kind of lies is left out.
func TestEveryAttackHasItsKinds(t *testing.T) {
	for i := range lies {
		if !slices.ContainsFunc(attacks, func(a attack) bool { return slices.Contains(a.lies, lies[i].name) }) {
			t.Errorf("no attack sends %s", lies[i].name)
		}
	}
}

// TestEveryAttackFails floods one service in every way, one after the other, while
// an honest fabric with three faults reports to it. During each flood honest reports
// are analysed as before, the faults are found as before, and nothing else is; the
// operator and probes are answered.
func TestEveryAttackFails(t *testing.T) {
	s := prepare(t, hardened())
	s.start()
	l := newHonest(s)
	l.chatter()
	l.play()
	faults := l.faults()
	for _, f := range faults {
		f.begin()
	}
	s.finds(faults, s.born)
	s.goesOn(t, nobody)
	s.sameIncidents(t, faults, nobody)
	for _, one := range attacks {
		t.Run(one.name, func(t *testing.T) {
			defer s.during(t)()
			one.strike(t, s, l, faults)
		})
	}
	t.Run("counters of losses", func(t *testing.T) {
		for _, name := range []string{"transport", "int", "erspan"} {
			if _, lost := stage(s.health(), name); lost["missing"] > 1e6 {
				t.Errorf("%s misses %d reports; want what honest sequences miss", name, lost["missing"])
			}
		}
	})
	t.Run("files for others to read", func(t *testing.T) { s.privateFiles(t) })
	if used := s.status("VmHWM"); used > memoryLimit && !race.Enabled {
		t.Errorf("%v of memory at most; want no more than the limit of %v", used, memoryLimit)
	}
	t.Logf("the fabric's clock was slowed by %v; %v of memory at most", time.Duration(l.slow.Load()), s.status("VmHWM"))
	s.stop()
}

// strike attacks a service. A switch that was taken over can lie about itself: while
// it does, flows and incidents of the others are as before, and all are once it has
// stopped.
func (one *attack) strike(t *testing.T, s *service, l *honest, faults []fault) {
	a, m := newArmy(s, 1, &l.bank), newMob(s)
	liar := nobody
	if one.insider {
		liar = l.place(3).tor
		a.h.insider, a.inside = liar, l.transmit
	}
	var kinds []lie
	for _, name := range one.lies {
		k := *named(name)
		if k.to == "erspan" && a.gre == nil {
			t.Skip("a raw socket takes CAP_NET_RAW, which root has, as in CI")
		}
		k.spoofed = k.spoofed || one.insider
		kinds = append(kinds, k)
	}
	from := s.clock.now()
	o := operate(s)
	for i := range kinds {
		a.burst(&kinds[i], one.n)
	}
	stop := func() {}
	if one.web != nil {
		one.web(m)
		s.eventually("strangers have connected", func() bool { return m.dials.Load() >= 1000 || m.guess.Load() >= 10 })
	} else {
		stop = a.march(kinds, 500)
	}
	s.goesOn(t, liar)
	s.finds(faults, from)
	o.answered(t, s)
	stop()
	m.stop()
	if one.insider {
		s.goesOn(t, nobody)
	}
	s.sameIncidents(t, faults, liar)
}

// nobody is no node.
const nobody = model.NodeID(0xffff)

// goesOn waits until reports that are made from now on have been analysed: flows of
// the whole fabric are in the API, but those of a switch that lies.
func (s *service) goesOn(t *testing.T, liar model.NodeID) {
	t.Helper()
	from := s.clock.now()
	var missing map[uint16]string
	defer func() {
		if t.Failed() {
			t.Logf("no flows since %v: %v; the stages: %+v", from, missing, s.health().Stages)
		}
	}()
	hosts := s.fabric.Hosts()
	s.eventually("flows of now are analysed", func() bool {
		missing = map[uint16]string{}
		for i, h := range hosts {
			to := hosts[(i+chatterTo)%len(hosts)]
			if s.fabric.Node(h).Ports[0].Peer.Node != liar && s.fabric.Node(to).Ports[0].Peer.Node != liar {
				missing[uint16(chatterPort+i)] = s.fabric.Node(h).Name
			}
		}
		q := api.FlowsQuery{Range: api.Range{From: from, To: s.clock.now().Add(time.Second)}, Paging: api.Paging{Limit: 1000}}
		for {
			page, err := s.api.Flows(t.Context(), q)
			if err != nil {
				s.alive()
				t.Fatal(err)
			}
			for i := range page.Items {
				delete(missing, page.Items[i].Flow.SrcPort)
			}
			if page.Next == "" || len(missing) == 0 {
				return len(missing) == 0
			}
			q.After = page.Next
		}
	})
}

// sameIncidents fails the test for new incidents that the faults do not support, and
// that are not about a switch that lies.
func (s *service) sameIncidents(t *testing.T, faults []fault, liar model.NodeID) {
	t.Helper()
	for _, in := range invented(s, s.incidents(), faults, liar) {
		if !s.blamed[in.ID] {
			t.Errorf("invented: %s", describe(&in))
			s.explain(t, &in)
		}
		s.blamed[in.ID] = true
	}
}

// explain logs what an incident rests on, and what the service knows to be lost.
func (s *service) explain(t *testing.T, in *api.Incident) {
	t.Helper()
	full, err := s.api.Incident(t.Context(), in.ID)
	if err != nil {
		t.Error(err)
		return
	}
	for _, e := range full.Timeline {
		t.Logf("%v %s %s: %s", e.Time, e.Kind, e.Source, e.Text)
	}
	around := api.Range{From: in.Begin.Add(-20 * time.Second), To: in.Begin.Add(20 * time.Second)}
	traces, err := s.api.Traces(t.Context(), api.TracesQuery{Range: around, Paging: api.Paging{Limit: 200}, Node: startedAt(in), End: "lost"})
	if err != nil {
		t.Error(err)
		return
	}
	for _, one := range traces.Items {
		t.Logf("lost: %v %v %s, %d mirrors missing", one.Time, one.Flow.Flow, strings.Join(one.Path, " "), one.LostMirrors)
	}
	for _, st := range s.health().Stages {
		for _, l := range st.Losses {
			if l.Count > 0 {
				t.Logf("%s: %d %s", st.Name, l.Count, l.Reason)
			}
		}
	}
}

// answered waits for some answers, stops the operator, and fails the test if a
// request or a probe was not answered.
func (o *operator) answered(t *testing.T, s *service) {
	t.Helper()
	s.eventually("answers", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.times)+len(o.failed) >= 20 && o.probes >= 3
	})
	o.stop()
	if len(o.failed)+len(o.unprobed) > 0 {
		t.Errorf("not answered: %q, /healthz %q", o.failed, o.unprobed)
	}
	t.Logf("%d answers, p50 %v, p99 %v", len(o.times), o.percentile(0.5), o.percentile(0.99))
}

// privateFiles fails the test for files of the service that others may read.
func (s *service) privateFiles(t *testing.T) {
	files, err := filepath.Glob(s.path("weft.duckdb*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the store: %v", err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v; want it for its owner alone", name, info.Mode())
		}
	}
}
