package siege

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

var (
	duration = flag.Duration("siege.duration", 8*time.Second, "how long TestHostileHour besieges the service")
	rate     = flag.Int("siege.rate", 0, "hostile datagrams per second of TestHostileHour; 0: 10000, and 2000 with the race detector")
	results  = flag.String("siege.results", "", "file for the results of TestHostileHour, as JSON; empty: none")
)

// result is what a run measured.
type result struct {
	Duration  string            `json:"duration"`
	Rate      float64           `json:"hostile_datagrams_per_second"`
	Sent      map[string]uint64 `json:"hostile_datagrams"` // by kind
	Honest    uint64            `json:"honest_reports"`
	Slowed    string            `json:"fabric_clock_slowed_by"` // what the machine did not give
	Refused   map[string]uint64 `json:"refused"`                // by stage and reason
	Dials     uint64            `json:"hostile_connections"`
	Guesses   uint64            `json:"wrong_tokens"`
	RSS       string            `json:"rss_max"`
	Limit     string            `json:"memory_limit"`
	P50       string            `json:"api_p50"`
	P99       string            `json:"api_p99"`
	Requests  int               `json:"api_requests"`
	Failed    []string          `json:"api_requests_failed"`
	Probes    int               `json:"healthz_probes"`
	Unprobed  []string          `json:"healthz_probes_failed"`
	Found     map[string]string `json:"faults_found"`
	Verdicts  []string          `json:"incidents"`
	Invented  []string          `json:"incidents_without_support"`
	Baseline  []string          `json:"incidents_of_the_run_without_attackers"`
	Beyond    []string          `json:"incidents_that_it_did_not_have"` // another place or stage of the same faults
	Alerts    []string          `json:"alerts"`
	rss       model.Bytes
	incidents []api.Incident
}

// memoryLimit is that of the besieged service.
const memoryLimit = 3 * model.GiB

// hardened is a production configuration: MACs, and allow-lists for the rest.
func hardened() map[string]string {
	all := map[string]string{
		"dta.require": "mac", "int.allow": "127.1.0.0/16", "erspan.allow": "127.1.0.0/16",
		"memory.limit": memoryLimit.String(),
	}
	for k := range all {
		if !hasSetting(k) {
			delete(all, k)
		}
	}
	return all
}

// besiege runs the honest fabric with its three faults for a time, and attackers
// beside it if there are any. The faults come one after the other.
func besiege(t *testing.T, length time.Duration, attack func(*service, *honest) (stop func(), a *army, m *mob)) (r result) {
	t.Helper()
	s := prepare(t, hardened())
	s.start()
	l := newHonest(s)
	l.chatter()
	stopFabric := l.play()
	// The fabric has been heard before anything else happens.
	s.eventually("the fabric is heard", func() bool { st, _ := stage(s.health(), "analyzers"); return st.Out > 1000 })
	began := time.Now()
	stopAttack, a, m := attack(s, l)
	o := operate(s)
	r = result{Duration: length.String(), Limit: memoryLimit.String(), Sent: map[string]uint64{}, Refused: map[string]uint64{}, Found: map[string]string{}}
	faults, injected := l.faults(), map[string]time.Time{}
	minute, last := 0, waiting{}
	for next := 0; time.Since(began) < length || len(r.Found) < len(faults); time.Sleep(500 * time.Millisecond) {
		s.alive()
		if next < len(faults) && time.Since(began) >= length*time.Duration(next)/time.Duration(len(faults)+1) {
			faults[next].begin()
			injected[faults[next].cause] = time.Now()
			next++
			last = s.waiting()
		}
		for _, f := range faults[:next] {
			if r.Found[f.cause] == "" && s.found(f, s.born) {
				r.Found[f.cause] = fmt.Sprintf("at %s after %v", s.fabric.Node(f.at).Name, time.Since(injected[f.cause]).Round(time.Millisecond))
			}
		}
		if m := int(time.Since(began).Minutes()); m > minute {
			minute = m
			t.Logf("minute %d: %v of memory, %v at most, %d honest reports, found %v", m, s.status("VmRSS"), s.status("VmHWM"), l.sent.Load(), r.Found)
		}
		if time.Since(began) > length && last.over(s) {
			break // not found: the caller says so
		}
	}
	took := time.Since(began)
	o.stop()
	stopAttack()
	stopFabric()
	r.incidents = s.incidents()
	h := s.health()
	for _, st := range h.Stages {
		for _, lost := range st.Losses {
			if lost.Count > 0 {
				r.Refused[st.Name+": "+lost.Reason] = lost.Count
			}
		}
	}
	r.Alerts, r.rss, r.Honest = h.Alerts, s.status("VmHWM"), l.sent.Load()
	r.RSS, r.Slowed = r.rss.String(), time.Duration(l.slow.Load()).String()
	r.P50, r.P99 = o.percentile(0.5).String(), o.percentile(0.99).String()
	r.Requests, r.Failed, r.Probes, r.Unprobed = len(o.times), o.failed, o.probes, o.unprobed
	if a != nil {
		total := uint64(0)
		for k, n := range a.sent {
			r.Sent[k] = n.Load()
			total += n.Load()
		}
		r.Rate = float64(total) / took.Seconds()
		r.Dials, r.Guesses = m.dials.Load(), m.guess.Load()
	}
	for _, v := range s.verdicts() {
		r.Verdicts = append(r.Verdicts, v.String())
	}
	for _, in := range invented(s, r.incidents, faults, nobody) {
		r.Invented = append(r.Invented, describe(&in))
	}
	s.stop()
	return r
}

// TestHostileHour: all kinds of attackers at once beside an honest fabric with three
// faults. The service finds the three and nothing else, as it does without them,
// within its memory, and answers its operator all the while. make siege
// DURATION=1h runs the hour.
func TestHostileHour(t *testing.T) {
	n := *rate
	if n == 0 {
		n = race.Less(10_000, 2000)
	}
	alone := besiege(t, min(*duration, 2*time.Minute), func(*service, *honest) (func(), *army, *mob) { return func() {}, nil, nil })
	r := besiege(t, *duration, func(s *service, l *honest) (func(), *army, *mob) {
		a, m := newArmy(s, 1, &l.bank), newMob(s)
		m.idle(300)
		m.silent(100)
		m.slow(100)
		m.streams(50)
		m.guesses(2)
		stop := a.march(lies, n)
		return func() { stop(); m.stop() }, a, m
	})
	r.Baseline = alone.Verdicts
	for _, v := range r.Verdicts {
		if !slices.Contains(r.Baseline, v) {
			r.Beyond = append(r.Beyond, v)
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *results != "" {
		if err := os.WriteFile(*results, append(text, '\n'), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%s", text)
	r.check(t, alone)
}

// check fails the test for what must not be.
func (r *result) check(t *testing.T, alone result) {
	t.Helper()
	for what, list := range map[string][]string{
		"incidents that nothing honest supports": r.Invented, "invented without attackers": alone.Invented,
		"requests with a token without an answer": r.Failed, "unanswered /healthz": r.Unprobed,
	} {
		if len(list) > 0 {
			t.Errorf("%s:\n%s", what, strings.Join(list, "\n"))
		}
	}
	for _, one := range []result{alone, *r} {
		if len(one.Found) != 3 {
			t.Errorf("found %v; want all three faults", one.Found)
		}
	}
	if r.rss > memoryLimit && !race.Enabled { // the detector's own memory is several times the program's
		t.Errorf("%v of memory at most; want no more than the limit of %v", r.rss, memoryLimit)
	}
}
