package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

func getJSON[T any](t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Server, path string,
) (v T) {
	t.Helper()
	w := do(s.Handler(), "GET", Prefix+path, "", "Accept-Encoding", "gzip")
	b := w.Body.Bytes()
	if w.Header().Get("Content-Encoding") == "gzip" {
		b = unzip(t, b)
	}
	if err := json.Unmarshal(b, &v); w.Code != 200 || err != nil {
		t.Fatalf("GET %s = %d %s, %v", path, w.Code, b, err)
	}
	return v
}

// step makes a new snapshot: some ports report, some nodes change.
func (k *fake) step(rt *rapid.T) {
	n := *k.state
	ns := rapid.IntRange(1, 5_000_000).Draw(rt, "ns")
	n.Time = n.Time.Add(time.Duration(ns))
	n.Nodes, n.Ports = slices.Clone(n.Nodes), slices.Clone(n.Ports)
	for i := range n.Ports {
		if n.Ports[i].AgeMs >= 0 {
			n.Ports[i].AgeMs += float64(ns) / 1e6
		}
	}
	for range rapid.IntRange(0, 4).Draw(rt, "reports") {
		p := &n.Ports[rapid.IntRange(0, len(n.Ports)-1).Draw(rt, "port")]
		p.QueueBytes, p.AgeMs = int64(rapid.IntRange(0, 3).Draw(rt, "queue")), 0
	}
	if rapid.Bool().Draw(rt, "health") {
		i := rapid.IntRange(0, len(n.Nodes)-1).Draw(rt, "node")
		n.Nodes[i].Health = rapid.SampledFrom([]string{"ok", "failed"}).Draw(rt, "is")
	}
	k.state = &n
}

// sameState compares the states of two clients; ages may differ by rounding.
func sameState(a, b *State) error {
	if !a.Time.Equal(b.Time) || a.Snapshot != b.Snapshot || !slices.Equal(a.Nodes, b.Nodes) || len(a.Ports) != len(b.Ports) {
		return fmt.Errorf("%v %s %d ports, want %v %s %d ports", a.Time, a.Snapshot, len(a.Ports), b.Time, b.Snapshot, len(b.Ports))
	}
	for i := range a.Ports {
		p, q := a.Ports[i], b.Ports[i]
		if math.Abs(p.AgeMs-q.AgeMs) > .05 {
			return fmt.Errorf("%+v, want %+v", p, q)
		}
		if p.AgeMs = q.AgeMs; p != q {
			return fmt.Errorf("%+v, want %+v", p, q)
		}
	}
	return nil
}

// TestStateSince: clients that ask only for changes, each at its own times and for its
// own pods, have the same state as one that asks for all.
func TestStateSince(t *testing.T) {
	s, k := newServer(t)
	first := k.state
	rapid.Check(t, func(rt *rapid.T) {
		k.state = first
		paths := []string{"/state", "/state?pods=0", "/state?pods=1,-1"}
		clients := make([]State, len(paths))
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			k.step(rt)
			i := rapid.IntRange(0, len(paths)-1).Draw(rt, "client")
			at, err := url.Parse(paths[i])
			if err != nil {
				rt.Fatal(err)
			}
			if clients[i].Snapshot != "" {
				q := at.Query()
				q.Set("since", clients[i].Snapshot)
				at.RawQuery = q.Encode()
			}
			had := clients[i].Snapshot
			changes := getJSON[State](rt, s, at.String())
			if changes.Since != had {
				rt.Fatalf("asked for changes since %q, got those since %q", had, changes.Since)
			}
			clients[i].Apply(&changes)
			want := getJSON[State](rt, s, paths[i])
			if err := sameState(&clients[i], &want); err != nil {
				rt.Fatalf("client %d: %v", i, err)
			}
		}
	})
}

// TestStateSinceIsSmall: an answer has what has changed, and nothing else.
func TestStateSinceIsSmall(t *testing.T) {
	s, k := newServer(t)
	st := getJSON[State](t, s, "/state")
	for i := range 5 {
		k.change(7, int64(100+i))
		getJSON[State](t, s, "/state") // of another client
	}
	d := getJSON[State](t, s, "/state?since="+st.Snapshot)
	if d.Since != st.Snapshot || len(d.Ports) != 1 || d.Ports[0].QueueBytes != 104 || len(d.Nodes) != 0 {
		t.Errorf("changes of one port: since %q, %d nodes, ports %v", d.Since, len(d.Nodes), d.Ports)
	}
	if d = getJSON[State](t, s, "/state?since="+d.Snapshot); d.Since == "" || len(d.Ports) != 0 || len(d.Nodes) != 0 {
		t.Errorf("nothing has changed, got %+v", d)
	}
}

// TestStateSinceUnknown: of a snapshot of another run, of the future or of another
// topology, the answer is the whole state.
func TestStateSinceUnknown(t *testing.T) {
	s, k := newServer(t)
	st := getJSON[State](t, s, "/state")
	run, other := st.Snapshot[:len(st.Snapshot)-1], "other-1"
	for _, id := range []string{other, "x", "-", run + "0", run + "9999", run + "-1", run + "1x", url.QueryEscape("ä\x00")} {
		if d := getJSON[State](t, s, "/state?since="+id); d.Since != "" || len(d.Ports) != len(st.Ports) {
			t.Errorf("since %s: %q, %d ports; want all %d", id, d.Since, len(d.Ports), len(st.Ports))
		}
	}
	next := *k.state
	next.Ports = slices.Clone(next.Ports)
	next.Ports[0].Port = 99 // as many ports, but others
	k.state = &next
	if d := getJSON[State](t, s, "/state?since="+st.Snapshot); d.Since != "" || len(d.Ports) != len(st.Ports) {
		t.Errorf("after a change of the topology: %d ports since %q; want all", len(d.Ports), d.Since)
	}
}

// TestEventsAreChanges: the snapshots of events and of answers are the same: a client
// may continue with either.
func TestEventsAreChanges(t *testing.T) {
	s, k := newServer(t, quick)
	events := listen(t, serve(t, s), "?types=state", "")
	var e StateEvent
	next(t, events, "state", &e)
	mine := e.State
	for i := range 20 {
		k.change(i, int64(i+1))
		if i%3 == 0 {
			d := getJSON[State](t, s, "/state?since="+mine.Snapshot)
			other := mine
			other.Nodes, other.Ports = slices.Clone(mine.Nodes), slices.Clone(mine.Ports)
			other.Apply(&d)
			if want := getJSON[State](t, s, "/state"); sameState(&other, &want) != nil {
				t.Fatalf("changes since an event: %v", sameState(&other, &want))
			}
		}
		var e StateEvent
		next(t, events, "state", &e)
		if e.Since != mine.Snapshot || e.Full {
			t.Fatalf("an event since %s follows %s", e.Since, mine.Snapshot)
		}
		mine.Apply(&e.State)
		if mine.Ports[i].QueueBytes != int64(i+1) {
			t.Fatalf("port %d is %+v", i, mine.Ports[i])
		}
	}
}

// TestPods: the pods together are the fabric, each link is with the pods of its ends.
func TestPods(t *testing.T) {
	s, k := newServer(t)
	whole, all := getJSON[Topology](t, s, "/topology"), getJSON[State](t, s, "/state")
	pod := map[string]int{}
	for _, n := range whole.Nodes {
		pod[n.Name] = -1
		if n.Pod != nil {
			pod[n.Name] = *n.Pod
		}
	}
	nodes, ports := 0, 0
	for p := -1; p < 4; p++ {
		part, st := getJSON[Topology](t, s, fmt.Sprint("/topology?pods=", p)), getJSON[State](t, s, fmt.Sprint("/state?pods=", p))
		nodes, ports = nodes+len(part.Nodes), ports+len(st.Ports)
		want := Topology{Name: whole.Name, Nodes: []Node{}, Links: []Link{}}
		for _, n := range whole.Nodes {
			if pod[n.Name] == p {
				want.Nodes = append(want.Nodes, n)
			}
		}
		for _, l := range whole.Links {
			if pod[l.A.Node] == p || pod[l.B.Node] == p {
				want.Links = append(want.Links, l)
			}
		}
		if !reflect.DeepEqual(part, want) {
			t.Errorf("pod %d: %d nodes, %d links; want %d, %d", p, len(part.Nodes), len(part.Links), len(want.Nodes), len(want.Links))
		}
		for _, x := range st.Ports {
			if pod[x.Node] != p {
				t.Errorf("%s is in the state of pod %d", x.Node, p)
			}
		}
	}
	if nodes != len(whole.Nodes) || ports != len(all.Ports) || len(k.state.Ports) != ports {
		t.Errorf("%d nodes and %d ports in pods; want %d, %d", nodes, ports, len(whole.Nodes), len(all.Ports))
	}
}

// TestOverview compares the sums with sums over the topology, port by port.
func TestOverview(t *testing.T) {
	s, k := newServer(t)
	nodes := map[string]*topo.Node{}
	for i := range k.fabric.Nodes() {
		nodes[k.fabric.Nodes()[i].Name] = &k.fabric.Nodes()[i]
	}
	pod := func(n *topo.Node) *int {
		if n.Pod == topo.NoPod {
			return nil
		}
		return &n.Pod
	}
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	first := k.state
	rapid.Check(t, func(rt *rapid.T) {
		n := *first
		n.Nodes, n.Ports = slices.Clone(n.Nodes), slices.Clone(n.Ports)
		for range 20 {
			p := &n.Ports[rapid.IntRange(0, len(n.Ports)-1).Draw(rt, "port")]
			p.QueueBytes, p.LoadBps = rapid.Int64Range(0, 1e6).Draw(rt, "queue"), rapid.Int64Range(0, 1e11).Draw(rt, "load")
			p.LoadShare, p.PausedShare = float64(p.LoadBps)/1e11, float64(p.QueueBytes%2)
			p.LostPackets, p.AgeMs = uint64(p.QueueBytes%3), float64(p.QueueBytes%4*500-1)
			n.Nodes[rapid.IntRange(0, len(n.Nodes)-1).Draw(rt, "node")].Health = rapid.SampledFrom([]string{"failed", "degraded", "unknown"}).Draw(rt, "is")
		}
		n.Ports = append(n.Ports, PortState{Node: "elsewhere", Port: 1}, PortState{Node: n.Nodes[0].Name, Port: model.PortID(999)})
		k.state = &n
		got := getJSON[Overview](rt, s, "/overview")
		pods, groups := map[string]PodState{}, map[string]LinkGroup{}
		for _, x := range n.Nodes {
			key := text(pod(nodes[x.Name]))
			p := pods[key]
			p.Pod = pod(nodes[x.Name])
			if nodes[x.Name].Role.IsSwitch() {
				p.Switches++
			} else {
				p.Hosts++
			}
			p.Failed, p.Degraded, p.Unknown = p.Failed+count(x.Health == "failed"), p.Degraded+count(x.Health == "degraded"), p.Unknown+count(x.Health == "unknown")
			pods[key] = p
		}
		for i := range n.Ports {
			x := &n.Ports[i]
			from := nodes[x.Node]
			if from == nil || int(x.Port) > len(from.Ports) {
				continue
			}
			to := k.fabric.Node(k.fabric.Port(model.Port{Node: from.ID, Port: x.Port}).Peer.Node)
			p := pods[text(pod(from))]
			p.add(x)
			pods[text(pod(from))] = p
			g := LinkGroup{From: GroupEnd{pod(from), from.Role.String()}, To: GroupEnd{pod(to), to.Role.String()}}
			key := text(g)
			if old, there := groups[key]; there {
				g = old
			}
			g.add(x)
			groups[key] = g
		}
		if len(got.Pods) != len(pods) || len(got.Links) != len(groups) || got.Snapshot == "" || !got.Time.Equal(n.Time) {
			rt.Fatalf("%d pods, %d groups; want %d, %d", len(got.Pods), len(got.Links), len(pods), len(groups))
		}
		for _, p := range got.Pods {
			if text(p) != text(pods[text(p.Pod)]) {
				rt.Fatalf("pod %s; want %s", text(p), text(pods[text(p.Pod)]))
			}
		}
		for _, g := range got.Links {
			if want := groups[text(LinkGroup{From: g.From, To: g.To})]; text(g) != text(want) {
				rt.Fatalf("group %s; want %s", text(g), text(want))
			}
		}
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAnswersAreCached: equal requests for the topology and for one snapshot share the
// bytes, compressed ones, too.
func TestAnswersAreCached(t *testing.T) {
	s, k := newServer(t)
	st, id := s.snapshots.newest()
	a, b := s.stateJSON.encode(st, id, true), s.stateJSON.encode(st, id, true)
	if &a[0] != &b[0] {
		t.Error("a snapshot is compressed twice")
	}
	if z, again := s.currentFabric().zipped(), s.currentFabric().zipped(); &z[0] != &again[0] {
		t.Error("the topology is compressed twice")
	}
	k.change(0, 5)
	st, id = s.snapshots.newest()
	if c := s.stateJSON.encode(st, id, true); bytes.Equal(a, c) || !bytes.Contains(unzip(t, c), []byte(id)) {
		t.Error("a new snapshot has the bytes of the old one")
	}
}
