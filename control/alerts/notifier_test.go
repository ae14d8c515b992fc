package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// receiver is a webhook that records what it gets, without a socket.
type receiver struct {
	mu     sync.Mutex
	got    []Alert
	status int
	calls  int
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	w := httptest.NewRecorder()
	if r.status != 0 {
		w.WriteHeader(r.status)
		return w.Result(), nil
	}
	var a Alert
	if err := json.NewDecoder(req.Body).Decode(&a); err != nil {
		return nil, err
	}
	r.got = append(r.got, a)
	return w.Result(), nil
}

func (r *receiver) take() (list []Alert) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.got = r.got, nil
	return list
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// start runs a notifier with one webhook.
func start(t *testing.T, change func(*Config), muted func(string) bool) (*Notifier, *receiver, func()) {
	cfg := DefaultConfig()
	cfg.Link, cfg.Targets = "https://weft.example:8443/", []Target{{Kind: Webhook, URL: "http://hook.example/weft"}}
	if change != nil {
		change(&cfg)
	}
	n, err := New(cfg, Deps{Muted: muted})
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{}
	n.targets[0].client.Transport = r
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.Run(ctx)
	}()
	return n, r, func() { cancel(); <-ended }
}

func incident(id string, change ...func(*record.Incident)) record.Incident {
	r := record.Incident{
		ID: id, Begin: time.Now(), Updated: time.Now(), Cause: "storm", Severity: "critical", Location: "h14", Summary: "h14 pauses tor7",
		Body: json.RawMessage(`{"sentence":"PFC storm: …","confidence":0.97,"remedy":"isolate the host","jobs":["training"],"job_ranks":[{"job":"training","hosts":["h3","h14"]}]}`),
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func ended(r *record.Incident)  { r.End = time.Now() }
func notice(r *record.Incident) { r.Severity = "notice" }

func check(t *testing.T, what string, got []Alert, want ...string) {
	t.Helper()
	var list []string
	for _, a := range got {
		list = append(list, a.Status+" "+a.Incident+" "+a.Cause)
	}
	if fmt.Sprint(list) != fmt.Sprint(want) {
		t.Errorf("%s: alerts %q; want %q", what, list, want)
	}
}

// account checks that every alert is delivered, replaced, lost or waits.
func account(t *testing.T, n *Notifier) Stats {
	t.Helper()
	s := n.Stats()[0]
	if l := s.Losses; s.In != s.Out+s.Replaced+l.QueueFull+l.Rejected+l.Expired+l.Stopped+uint64(s.Waiting) {
		t.Errorf("alerts do not add up: %+v", s)
	}
	return s
}

// TestFiresAndResolves: an alert has all that is known, fires once, and is resolved at
// the end of the incident, but not before the hold. Notices have none.
func TestFiresAndResolves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r, stop := start(t, nil, nil)
		defer stop()
		n.Update(incident("i1", notice))
		n.Update(incident("i2"))
		n.Update(incident("i2"))
		got := r.take()
		check(t, "open", got, "firing i2 storm")
		a := got[0]
		if a.Location != "h14" || a.Severity != "critical" || a.Confidence != 0.97 || len(a.Jobs) != 1 || a.Jobs[0] != "training" ||
			fmt.Sprint(a.Ranks) != "[{training [h3 h14]}]" ||
			a.Link != "https://weft.example:8443/#/incidents/i2" || a.Remedy == "" || a.Sentence == "" || a.End != nil {
			t.Errorf("alert %+v", a)
		}
		n.Update(incident("i2", ended))
		check(t, "before the hold", r.take())
		time.Sleep(2 * time.Minute)
		got = r.take()
		check(t, "after the hold", got, "resolved i2 storm")
		if got[0].End == nil {
			t.Error("a resolved alert has no end")
		}
		n.Update(incident("i3", ended)) // it was short
		check(t, "short", r.take(), "firing i3 storm")
		time.Sleep(2 * time.Minute)
		check(t, "short", r.take(), "resolved i3 storm")
		if s := account(t, n); s.Out != 4 || len(n.incidents) != 0 {
			t.Errorf("%+v, %d incidents; want 4 delivered and none kept", s, len(n.incidents))
		}
	})
}

// TestMutedIncidents: a muted incident raises no alert until the end of the mute; one
// that fires is resolved by a mute.
func TestMutedIncidents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var muted atomic.Bool
		muted.Store(true)
		n, r, stop := start(t, nil, func(id string) bool { return muted.Load() && id == "i1" })
		defer stop()
		n.Update(incident("i1"))
		n.Update(incident("i2"))
		time.Sleep(10 * time.Minute)
		check(t, "muted", r.take(), "firing i2 storm")
		muted.Store(false)
		time.Sleep(2 * time.Second)
		check(t, "unmuted", r.take(), "firing i1 storm")
		muted.Store(true)
		time.Sleep(2 * time.Second)
		check(t, "muted again", r.take(), "resolved i1 storm")
		n.Update(incident("i1", ended))
		time.Sleep(10 * time.Minute)
		check(t, "ended while muted", r.take())
	})
}

// TestCauseChanges: an incident whose cause changes resolves the old alert.
func TestCauseChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r, stop := start(t, nil, nil)
		defer stop()
		n.Update(incident("i1", func(r *record.Incident) { r.Cause = "stall" }))
		check(t, "first", r.take(), "firing i1 stall")
		n.Update(incident("i1"))
		check(t, "then", r.take(), "resolved i1 stall", "firing i1 storm")
		n.Update(incident("i1", ended, func(r *record.Incident) { r.Body = json.RawMessage(`{"merged_into":"i2"}`) }))
		check(t, "merged", r.take(), "resolved i1 storm")
	})
}

// ofJobs is a change that has an incident affect other jobs.
func ofJobs(jobs string) func(*record.Incident) {
	return func(r *record.Incident) { r.Body = json.RawMessage(`{"jobs":` + jobs + `}`) }
}

// TestTargetsByJob: a target with jobs receives the incidents that affect one of them, until
// their end or until they do not affect it any more; one without receives all. A reload
// changes the jobs.
func TestTargetsByJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cfg Config
		n, all, stop := start(t, func(c *Config) {
			c.Hold = 0
			c.Targets = append(c.Targets, Target{Kind: Webhook, URL: "http://hook.example/training", Jobs: []string{"training", "search"}})
			cfg = *c
		}, nil)
		defer stop()
		its := &receiver{}
		n.targets[1].client.Transport = its
		n.Update(incident("i1"))
		n.Update(incident("i2", ofJobs(`["analytics"]`)))
		n.Update(incident("i3", ofJobs(`[]`)))
		check(t, "all", all.take(), "firing i1 storm", "firing i2 storm", "firing i3 storm")
		check(t, "its jobs", its.take(), "firing i1 storm")
		n.Update(incident("i2", ofJobs(`["analytics","search"]`)))
		check(t, "a job of its own, too", its.take(), "firing i2 storm")
		n.Update(incident("i2", ofJobs(`["analytics"]`)))
		check(t, "not any more", its.take(), "resolved i2 storm")
		n.Update(incident("i1", ended))
		check(t, "the end", its.take(), "resolved i1 storm")
		all.take()

		cfg.Targets[1].Jobs = []string{"analytics"}
		apply, err := n.Prepare(cfg)
		if err != nil {
			t.Fatal(err)
		}
		apply()
		n.Update(incident("i4", ofJobs(`["analytics"]`)))
		n.Update(incident("i5"))
		check(t, "all after a reload", all.take(), "firing i4 storm", "firing i5 storm")
		check(t, "its jobs after a reload", its.take(), "firing i4 storm")
		for _, s := range n.Stats() {
			if l := s.Losses; s.In != s.Out+s.Replaced+uint64(s.Waiting) || l != (Losses{}) {
				t.Errorf("%+v; want no losses: what a target does not receive is none", s)
			}
		}
	})
}

// TestDeliveryIsRepeated: failures are repeated with growing delays, a refusal is not,
// what waits too long or finds the queue full is counted.
func TestDeliveryIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r, stop := start(t, func(c *Config) { c.Queue = 2 }, nil)
		defer stop()
		r.answer(503)
		n.Update(incident("i1"))
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if r.calls < 6 || r.calls > 9 { // at 0, 1, 3, 7, 15, 31, 63 s, and then each minute
			t.Errorf("%d calls in 100 s; want 7 with doubling delays", r.calls)
		}
		r.answer(0)
		time.Sleep(time.Minute)
		check(t, "recovered", r.take(), "firing i1 storm")
		r.answer(400)
		n.Update(incident("i2"))
		synctest.Wait()
		if s := account(t, n); s.Losses.Rejected != 1 || s.Err == nil || !errors.Is(s.Err, errRejected) {
			t.Errorf("%+v; want one rejected", s)
		}
		r.answer(500)
		for i := range 5 {
			n.Update(incident(fmt.Sprint("j", i)))
		}
		synctest.Wait()
		if s := account(t, n); s.Losses.QueueFull != 3 || s.Waiting != 2 {
			t.Errorf("%+v; want 3 lost and 2 that wait", s)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if s := account(t, n); s.Losses.Expired != 2 || s.Waiting != 0 {
			t.Errorf("%+v; want 2 expired", s)
		}
	})
}

// TestStopDelivers: a notifier that stops sends what waits once more, and counts the
// rest as lost.
func TestStopDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r, stop := start(t, nil, nil)
		r.answer(503)
		n.Update(incident("i1"))
		synctest.Wait()
		r.answer(0)
		stop()
		check(t, "stop", r.take(), "firing i1 storm")
		n, r, stop = start(t, nil, nil)
		r.answer(503)
		n.Update(incident("i1"))
		synctest.Wait()
		stop()
		if s := account(t, n); s.Losses.Stopped != 1 {
			t.Errorf("%+v; want one lost at the stop", s)
		}
	})
}

// TestIncidentsAreBounded: more open incidents than the bound are counted.
func TestIncidentsAreBounded(t *testing.T) {
	n, err := New(DefaultConfig(), Deps{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxIncidents + 3 {
		n.Update(incident(fmt.Sprint("i", i)))
	}
	if len(n.incidents) != maxIncidents || n.dropped != 3 {
		t.Errorf("%d incidents, %d dropped", len(n.incidents), n.dropped)
	}
}

// TestConfigErrors: a configuration that cannot work is refused with its key.
func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`severity: "bad", want one of notice, warning, critical`:          func(c *Config) { c.Severity = "bad" },
		`queue: 0, want 1 to 1048576`:                                     func(c *Config) { c.Queue = 0 },
		`link: url "weft", want one such as http://127.0.0.1:9093`:        func(c *Config) { c.Link = "weft" },
		`targets: jobs: one without a name, want names of jobs`:           func(c *Config) { c.Targets = []Target{{Kind: Webhook, URL: "http://h", Jobs: []string{""}}} },
		`targets: kind "mail", want alertmanager or webhook`:              func(c *Config) { c.Targets = []Target{{Kind: "mail"}} },
		`targets: url of h with a user or password, want a token instead`: func(c *Config) { c.Targets = []Target{{Kind: Webhook, URL: "http://a:b@h/"}} },
		`targets: url "ftp://h", want one such as http://127.0.0.1:9093`:  func(c *Config) { c.Targets = []Target{{Kind: Webhook, URL: "ftp://h"}} },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
