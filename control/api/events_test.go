package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sse is one received event.
type sse struct{ id, name, data string }

// listen receives the events of a server until the test ends.
func listen(t *testing.T, addr, query, last string) <-chan sse {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+addr+Prefix+"/events"+query, nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	tr := &http.Transport{}
	resp, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("events = %d %s", resp.StatusCode, ct)
	}
	out := make(chan sse, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(out)
		var e sse
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			switch key, value, _ := strings.Cut(lines.Text(), ": "); key {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					out <- e
				}
				e = sse{}
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		resp.Body.Close()
		reading.Wait()
		tr.CloseIdleConnections()
	})
	return out
}

// next waits for an event by name and decodes it. It skips other events.
func next(t *testing.T, events <-chan sse, name string, into any) sse {
	t.Helper()
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("the stream ended before a %s event", name)
			}
			if e.name != name {
				continue
			}
			if err := json.Unmarshal([]byte(e.data), into); err != nil {
				t.Fatalf("%s event %s: %v", name, e.data, err)
			}
			return e
		case <-time.After(time.Minute):
			t.Fatalf("no %s event", name)
		}
	}
}

func quick(c *Config, _ *Deps) {
	c.StateInterval, c.HealthInterval, c.Heartbeat = 5*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond
}

// change sets a port's queue in a new snapshot, in which all ports are 1 ms older.
func (k *fake) change(port int, queue int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := *k.state
	n.Ports = slices.Clone(n.Ports)
	n.Ports[port].QueueBytes = queue
	for i := range n.Ports {
		n.Ports[i].AgeMs++
	}
	n.Time = n.Time.Add(time.Millisecond)
	k.state = &n
}

// TestEvents: a client receives the full state, then changes, and all types of
// events as documented.
func TestEvents(t *testing.T) {
	s, k := newServer(t, quick)
	events := listen(t, serve(t, s), "", "")
	var st StateEvent
	next(t, events, "state", &st)
	if !st.Full || len(st.Ports) != len(k.state.Ports) || len(st.Nodes) != len(k.state.Nodes) {
		t.Fatalf("first event: full %v, %d ports, %d nodes", st.Full, len(st.Ports), len(st.Nodes))
	}
	k.change(7, 4711)
	next(t, events, "state", &st)
	if st.Full || len(st.Ports) != 1 || st.Ports[0].QueueBytes != 4711 || len(st.Nodes) != 0 {
		t.Fatalf("a change of one port was sent as %d ports, the first %+v, and %d nodes", len(st.Ports), st.Ports[:1],
			len(st.Nodes))
	}
	probe, _ := k.StartProbe(t.Context(), ProbeRequest{Kind: "flow", Flow: k.flow(0), Count: 1})
	mark, _ := k.SetMark(t.Context(), MarkRequest{Host: "h0", DurationMs: 1})
	fault, _ := k.Inject(t.Context(), FaultRequest{Kind: "imbalance"})
	for _, e := range []Event{NewIncident(&k.batch.Incidents[0]), probe, mark, fault, k.Clock(), k.Health()} {
		s.deps.Hub.Publish(e)
		var v any
		next(t, events, e.event(), &v)
		checkEvent(t, s, e, v)
	}
}

// checkEvent validates an event's data against the document.
func checkEvent(t *testing.T, s *Server, e Event, v any) {
	t.Helper()
	doc := s.api.OpenAPI()
	kinds := doc.Paths[Prefix+"/events"].Get.Responses["200"].Content["text/event-stream"].Schema.Items.OneOf
	i := slices.IndexFunc(kinds, func(k *huma.Schema) bool { return k.Properties["event"].Enum[0] == e.event() })
	if i < 0 {
		t.Fatalf("event %s is not in the document", e.event())
	}
	var res huma.ValidateResult
	huma.Validate(doc.Components.Schemas, kinds[i].Properties["data"], huma.NewPathBuffer(nil, 0),
		huma.ModeReadFromServer, v, &res)
	for _, err := range res.Errors {
		t.Errorf("event %s is not as documented: %v", e.event(), err)
	}
}

// TestCompressedEvents: a stream is complete in gzip's format, and has the text of the
// plain one; events arrive one by one, as TestEvents checks with the same client.
func TestCompressedEvents(t *testing.T) {
	var out [2]*httptest.ResponseRecorder
	for i, accept := range []string{"", "gzip"} {
		s, _ := newServer(t)
		s.deps.Hub.run = "run"
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		r.Header.Set("Accept-Encoding", accept)
		out[i] = httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			s.stream(r, deadlines{out[i]}, &eventsInput{Types: []string{"state", "probe"}})
			close(done)
		}()
		for clients, _, _ := s.deps.Hub.stats(); clients == 0; clients, _, _ = s.deps.Hub.stats() {
			time.Sleep(time.Millisecond)
		}
		for range 8 { // fits the buffer
			s.deps.Hub.Publish(Probe{ID: "p", Verdict: strings.Repeat("x", 50)})
		}
		s.deps.Hub.close()
		<-done
		cancel()
	}
	ids := regexp.MustCompile(`"snapshot":"[^"]*"`) // each server has its own
	plain := ids.ReplaceAll(out[0].Body.Bytes(), nil)
	got := ids.ReplaceAll(unzip(t, out[1].Body.Bytes()), nil)
	if !bytes.Equal(got, plain) || bytes.Count(plain, []byte("event: probe")) != 8 {
		t.Errorf("compressed: %.300q…\nplain: %.300q…", got, plain)
	}
	if h := out[1].Header().Get("Content-Encoding"); h != "gzip" || out[1].Body.Len() > len(plain)/2 {
		t.Errorf("Content-Encoding %q, %d of %d bytes", h, out[1].Body.Len(), len(plain))
	}
}

// deadlines lets a recorder take deadlines.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// TestEventsByType: only requested types are sent.
func TestEventsByType(t *testing.T) {
	s, _ := newServer(t, quick)
	addr := serve(t, s)
	events := listen(t, addr, "?types=probe,fault", "")
	s.deps.Hub.Publish(Mark{ID: "m"})
	s.deps.Hub.Publish(Fault{ID: "f"})
	if e := <-events; e.name != "fault" {
		t.Errorf("got %s first, want fault", e.name)
	}
	if w := do(s.Handler(), "GET", Prefix+"/events?types=gossip", ""); w.Code != 422 {
		t.Errorf("an unknown type = %d; want 422", w.Code)
	}
}

// TestEventsResume: a client that reconnects receives the missed events once and
// nothing else; if they are no longer buffered it receives a reset.
func TestEventsResume(t *testing.T) {
	s, k := newServer(t, quick)
	addr := serve(t, s)
	first := listen(t, addr, "?types=probe,state", "")
	var p Probe
	var st StateEvent
	next(t, first, "state", &st)
	s.deps.Hub.Publish(Probe{ID: "p-0"})
	e := next(t, first, "probe", &p)
	for i := 1; i <= 3; i++ {
		s.deps.Hub.Publish(Probe{ID: fmt.Sprint("p-", i)})
	}
	again := listen(t, addr, "?types=probe,state", e.id)
	for i := 1; i <= 3; i++ {
		if got := next(t, again, "probe", &p); p.ID != fmt.Sprint("p-", i) || got.id == "" {
			t.Errorf("after %s came %s %s; want p-%d", e.id, got.id, got.data, i)
		}
	}
	k.change(1, 1)
	if next(t, again, "state", &st); st.Full {
		t.Error("a resumed client was sent the full state")
	}
	for range 100 { // more than are kept
		s.deps.Hub.Publish(Mark{})
	}
	for _, last := range []string{e.id, "other-1", "nonsense", strings.Split(e.id, "-")[0] + "-99999999"} {
		lost := listen(t, addr, "?types=probe,state", last)
		if e := <-lost; e.name != "reset" {
			t.Errorf("Last-Event-ID %s: first came %s; want reset", last, e.name)
		}
		if next(t, lost, "state", &st); !st.Full {
			t.Errorf("Last-Event-ID %s: reset without a full state", last)
		}
	}
}

// TestEventsAfterAGap: after a time without clients no event can be resumed from,
// because changes of the state were not published.
func TestEventsAfterAGap(t *testing.T) {
	k := newFake(t)
	h := NewEventHub(16, 64)
	f := &stateFeed{snapshots: &snapshots{live: k}, hub: h}
	c, _, full := f.subscribe("")
	if full == nil {
		t.Fatal("no full state at first")
	}
	f.tick(epoch0)
	h.Publish(Probe{})
	last := fmt.Sprintf("%s-%d", c.run, (<-c.events).seq)
	h.unsubscribe(c)
	k.change(0, 9)
	f.tick(epoch0.Add(resumeWindow)) // still published
	if c, missed, full := f.subscribe(last); full != nil || len(missed) != 1 {
		t.Errorf("within the window: full %v, %d missed; want to resume with 1", full != nil, len(missed))
	} else {
		h.unsubscribe(c)
	}
	f.tick(epoch0.Add(3 * resumeWindow))
	k.change(0, 10)
	f.tick(epoch0.Add(4 * resumeWindow))
	if _, missed, full := f.subscribe(last); full == nil || len(missed) != 0 || full.Ports[0].QueueBytes != 10 {
		t.Errorf("after the window: full %v, %d missed; want the current state", full != nil, len(missed))
	}
}

// TestChangesOfPorts: a port is sent when a value changes or a new report arrives,
// not when only its age grows. A client that advances ages, as documented, always
// has the full state.
func TestChangesOfPorts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := &fake{state: &State{Time: epoch0}}
		reported := make([]time.Time, 5)
		for i := range reported {
			k.state.Ports = append(k.state.Ports, PortState{Port: model.PortID(i), AgeMs: -1})
		}
		h := NewEventHub(16, 16)
		f := &stateFeed{snapshots: &snapshots{live: k}, hub: h}
		c, _, full := f.subscribe("")
		known, at := slices.Clone(full.Ports), make([]time.Time, 5)
		for range rapid.IntRange(1, 20).Draw(rt, "ticks") {
			n := &State{
				Time:  k.state.Time.Add(time.Duration(rapid.IntRange(1, 5_000_000).Draw(rt, "ns"))),
				Ports: slices.Clone(k.state.Ports),
			}
			for i := range reported {
				p := &n.Ports[i]
				if rapid.Bool().Draw(rt, "reported") {
					reported[i] = n.Time.Add(-time.Duration(rapid.IntRange(0, 1).Draw(rt, "µs ago")) * time.Microsecond)
					p.QueueBytes = int64(rapid.IntRange(0, 1).Draw(rt, "queue"))
				}
				if !reported[i].IsZero() {
					p.AgeMs = float64(n.Time.Sub(reported[i])) / 1e6
				}
			}
			k.state = n
			f.tick(epoch0)
			var e StateEvent
			if err := json.Unmarshal((<-c.events).data, &e); err != nil || e.Full {
				rt.Fatalf("%+v, %v", e, err)
			}
			for _, p := range e.Ports {
				known[p.Port], at[p.Port] = p, e.Time
			}
			for i, p := range known {
				if p.AgeMs >= 0 {
					p.AgeMs += float64(e.Time.Sub(at[i])) / 1e6
				}
				if math.Abs(p.AgeMs-n.Ports[i].AgeMs) > .02 || p.QueueBytes != n.Ports[i].QueueBytes {
					rt.Fatalf("client has port %d as %+v; server has %+v", i, p, n.Ports[i])
				}
			}
		}
	})
	k := newFake(t)
	f := &stateFeed{snapshots: &snapshots{live: k}, hub: NewEventHub(16, 16)}
	c, _, _ := f.subscribe("")
	n := *k.state
	n.Time, n.Ports = n.Time.Add(time.Second), slices.Clone(n.Ports)
	for i := range n.Ports {
		n.Ports[i].AgeMs += 1000
	}
	k.state = &n
	f.tick(epoch0)
	var e StateEvent
	if err := json.Unmarshal((<-c.events).data, &e); err != nil || len(e.Ports) != 0 {
		t.Errorf("ports that are only older were sent: %d, %v", len(e.Ports), err)
	}
}

// connectUnread connects an event client that never reads, and returns when the hub
// has it.
func connectUnread(t *testing.T, s *Server, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET %s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", Prefix)
	for clients, _, _ := s.deps.Hub.stats(); clients == 0; clients, _, _ = s.deps.Hub.stats() {
		time.Sleep(time.Millisecond)
	}
}

// TestSlowListener: a client that does not read is disconnected and counted; other
// clients and the publisher are not affected.
func TestSlowListener(t *testing.T) {
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.WriteTimeout = time.Minute }) // longer than the hub takes
	addr := serve(t, s)
	connectUnread(t, s, addr)
	good := listen(t, addr, "?types=probe", "")
	big := Probe{Verdict: strings.Repeat("x", 200<<10)}
	sent := 0
	var p Probe
	for clients, _, _ := s.deps.Hub.stats(); clients > 1; clients, _, _ = s.deps.Hub.stats() {
		s.deps.Hub.Publish(big)
		sent++
		next(t, good, "probe", &p) // keeps up
		if sent > 5000 {
			t.Fatal("a client that reads nothing is still there")
		}
	}
	s.deps.Hub.Publish(Probe{ID: "last"})
	if next(t, good, "probe", &p); p.ID != "last" {
		t.Errorf("the other client got %q", p.ID)
	}
	if _, _, dropped := s.deps.Hub.stats(); dropped != 1 {
		t.Errorf("%d clients were dropped; want the slow one", dropped)
	}
}

// TestUnreadEvent: a client that does not read one event in time is disconnected,
// however few events there are.
func TestUnreadEvent(t *testing.T) {
	s, _ := newServer(t, func(c *Config, _ *Deps) { c.WriteTimeout = 100 * time.Millisecond })
	connectUnread(t, s, serve(t, s))
	s.deps.Hub.Publish(Probe{Verdict: strings.Repeat("x", 8<<20)}) // more than the kernel holds
	for end := time.Now().Add(time.Minute); len(s.streams) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that reads nothing is still connected after a minute")
		}
	}
	if clients, _, dropped := s.deps.Hub.stats(); clients != 0 || dropped != 0 {
		t.Errorf("%d clients, %d dropped by the hub; want 0 and 0", clients, dropped)
	}
}

// TestListenersAreBounded: a client beyond the limit gets 503.
func TestListenersAreBounded(t *testing.T) {
	s, _ := newServer(t, quick, func(c *Config, _ *Deps) { c.MaxClients = 1 })
	addr := serve(t, s)
	var st StateEvent
	next(t, listen(t, addr, "", ""), "state", &st)
	if w := do(s.Handler(), "GET", Prefix+"/events", ""); w.Code != 503 {
		t.Errorf("a client beyond the limit = %d; want 503", w.Code)
	}
}

// TestShutdown: event clients do not delay the shutdown.
func TestShutdown(t *testing.T) {
	s, _ := newServer(t, quick)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, ln) }()
	events := listen(t, ln.Addr().String(), "", "")
	var st StateEvent
	next(t, events, "state", &st)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	for range events { // ends
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// TestServeFails: errors name the address.
func TestServeFails(t *testing.T) {
	s, _ := newServer(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := s.Serve(context.Background(), ln); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Serve on a closed listener = %v", err)
	}
	s, _ = newServer(t, func(c *Config, _ *Deps) { c.Listen = "256.0.0.1:1" })
	if err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "256.0.0.1") {
		t.Errorf("Run = %v", err)
	}
}
