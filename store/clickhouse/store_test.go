package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func appendPorts(t *testing.T, s *Store, from, n int) error {
	t.Helper()
	b := &record.Batch{}
	for i := range n {
		b.Ports = append(b.Ports, record.PortSample{Time: base.Add(time.Duration(from+i) * time.Second), Node: fmt.Sprint("s", from+i), Port: 1})
	}
	return s.Append(t.Context(), b)
}

func nodes(t *testing.T, s *Store) (names []string) {
	t.Helper()
	q := record.Query{}
	for {
		p, err := s.Ports(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Items {
			names = append(names, r.Node)
		}
		if q.After = p.Next; q.After == "" {
			return names
		}
	}
}

// TestServerIsKilled kills the server between and during batches: what Append has
// accepted is there once, also that of a batch whose answer was lost.
func TestServerIsKilled(t *testing.T) {
	cfg := testConfig(t)
	cfg.Timeout = 10 * time.Second
	s := open(t, cfg)
	defer s.Close() //nolint:errcheck // the server may be away
	var accepted []string
	next := 0
	write := func() {
		if err := appendPorts(t, s, next, 5); err == nil {
			for i := range 5 {
				accepted = append(accepted, fmt.Sprint("s", next+i))
			}
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Append = %v; want ErrUnavailable", err)
		}
		next += 5
	}
	write()
	for range 3 {
		shared.Kill()
		write() // no server answers
		if err := shared.Start(); err != nil {
			t.Fatal(err)
		}
		write()
		write()
	}
	got := nodes(t, s)
	slices.Sort(got)
	slices.Sort(accepted)
	if len(accepted) < 5*7 {
		t.Errorf("%d samples are accepted; want at least those of the 7 batches while the server ran", len(accepted))
	}
	if d := cmp.Diff(accepted, got); d != "" {
		t.Errorf("samples (- accepted, + stored):\n%s", d)
	}
}

// TestTwoProcesses has two stores of one database: both see all records, and cursors of
// one are valid for the other.
func TestTwoProcesses(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxPage = 3
	a, b := open(t, cfg), open(t, cfg)
	defer a.Close() //nolint:errcheck // nothing is left
	defer b.Close() //nolint:errcheck // nothing is left
	for i, s := range []*Store{a, b, a, b} {
		if err := appendPorts(t, s, 2*i, 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*Store{a, b} {
		if got := nodes(t, s); len(got) != 8 {
			t.Errorf("%v; want 8 samples", got)
		}
	}
	page, err := a.Ports(t.Context(), record.Query{})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := b.Ports(t.Context(), record.Query{After: page.Next})
	if err != nil || len(rest.Items) != 3 || rest.Items[0].Node != "s4" {
		t.Errorf("the next page in another process: %+v, %v; want s4, s3, s2", rest.Items, err)
	}
}

// TestBlockIsLookedFor inserts a block whose answer gets lost: the second attempt finds it.
func TestBlockIsLookedFor(t *testing.T) {
	s := open(t, testConfig(t))
	defer s.Close() //nolint:errcheck // nothing is left
	w := &batchWrite{Store: s, next: s.allocate(1)}
	first := w.next
	list := []record.PortSample{{Time: base, Node: "s", Port: 1}}
	insert(t.Context(), w, &portTable, list)
	if n, err := w.stored(t.Context(), &w.done[0]); n != 1 || err != nil {
		t.Fatalf("%d rows, %v; want 1", n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.next = first // again, and the server does not answer
	insert(ended, w, &portTable, list)
	if w.err == nil {
		t.Error("a block that cannot be looked for counts as stored")
	}
	s.done()
	if got := nodes(t, s); len(got) != 1 {
		t.Errorf("%v; want one sample", got)
	}
}

// TestDaysAreDropped keeps a day of four.
func TestDaysAreDropped(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention = store.Retention{store.Ports: 24 * time.Hour}
	s := open(t, cfg)
	defer s.Close() //nolint:errcheck // nothing is left
	for d := range 4 {
		b := &record.Batch{Ports: []record.PortSample{{Time: base.Add(time.Duration(d) * 24 * time.Hour), Node: fmt.Sprint(d)}}}
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	done, err := s.Maintain(t.Context(), base.Add(4*24*time.Hour-time.Hour))
	if err != nil || done.Removed[store.Ports].Age != 3 || done.After == 0 {
		t.Errorf("Maintain = %+v, %v; want 3 samples removed", done, err)
	}
	var rows, days uint64
	if err := s.conn.QueryRow(t.Context(), `SELECT count(), uniqExact(intDiv(time, toInt64(86400000000000))) FROM ports`).Scan(&rows, &days); err != nil {
		t.Fatal(err)
	}
	if rows != 1 || len(nodes(t, s)) != 1 {
		t.Errorf("%d rows of %d days stay, %v are visible; want one", rows, days, nodes(t, s))
	}
	again := open(t, cfg)
	defer again.Close() //nolint:errcheck // nothing is left
	if got := nodes(t, again); len(got) != 1 {
		t.Errorf("after opening again %v; want one", got)
	}
}

func TestIncidentActions(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention = store.Retention{store.Incidents: time.Hour}
	s := open(t, cfg)
	defer s.Close() //nolint:errcheck // nothing is left
	list := []record.IncidentAction{
		{Time: base, Incident: "a", Kind: "ack", Who: "o'hara\x00"},
		{Time: base.Add(1), Incident: "b", Kind: "mute", Who: "x", Until: base.Add(time.Hour)},
		{Time: base.Add(2), Incident: "a", Kind: "comment", Who: "y", Text: "fan\nreplaced"},
	}
	if err := s.Append(t.Context(), &record.Batch{Incidents: []record.Incident{
		{ID: "a", Begin: base, Updated: base.Add(3 * time.Hour)}, {ID: "b", Begin: base, Updated: base},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if err := s.AppendIncidentAction(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for incident, want := range map[string][]record.IncidentAction{"": list, "a": {list[0], list[2]}, "b": {list[1]}, "c": {}} {
		got, err := s.IncidentActions(t.Context(), incident, 10)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("actions of %q, %v (- want, + got):\n%s", incident, err, d)
		}
	}
	if got, _ := s.IncidentActions(t.Context(), "", 1); len(got) != 1 || got[0].Text != list[2].Text {
		t.Errorf("the newest action is %+v", got)
	}
	if _, err := s.Maintain(t.Context(), base.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.IncidentActions(t.Context(), "", 10); err != nil || len(got) != 2 {
		t.Errorf("%+v, %v; want those of a, as b is removed", got, err)
	}
}

func TestNewerSchema(t *testing.T) {
	cfg := testConfig(t)
	s := open(t, cfg)
	if err := s.conn.Exec(t.Context(), `INSERT INTO weft_migrations (version, name, applied) SELECT 999, 'later', now()`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), cfg); !errors.Is(err, ErrNewer) {
		t.Errorf("Open = %v; want ErrNewer", err)
	}
}

func TestParseURL(t *testing.T) {
	c, err := ParseURL("clickhouse://weft@a:9000,b:9000/fabric?secure=true")
	if err != nil || !slices.Equal(c.Addresses, []string{"a:9000", "b:9000"}) || c.Database != "fabric" || c.User != "weft" || c.TLS == nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = ParseURL("clickhouse://a:9000/?cluster=fabric"); err != nil || c.Cluster != "fabric" || c.Database != "weft" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = ParseURL("clickhouse://a:9000"); err != nil || c.Database != "weft" || c.User != "default" || c.TLS != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, s := range []string{"", "http://a", "clickhouse://", "clickhouse:///db", "clickhouse://a/b;c", "clickhouse://a/b?x=1", "clickhouse://a/b?cluster=x%20y", "clickhouse://a/b?secure=yes", "clickhouse://u:hidden@a:9000/d", "clickhouse://u:hidden@a:b:c/d%zz"} {
		if _, err := ParseURL(s); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("ParseURL(%q) = %v; want an error without the password", s, err)
		}
	}
}

func TestQuote(t *testing.T) {
	s := open(t, testConfig(t))
	defer s.Close() //nolint:errcheck // nothing is left
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	var got string
	if err := s.conn.QueryRow(t.Context(), `SELECT `+quote(string(all))).Scan(&got); err != nil || got != string(all) {
		t.Errorf("SELECT of all bytes = %q, %v", got, err)
	}
}
