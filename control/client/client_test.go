package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weft-telemetry/weft/control/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://[", "://"} {
		if _, err := New(bad, "", nil); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:8080") {
			t.Errorf("New(%q) = %v", bad, err)
		}
	}
}

func TestValues(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	q := api.FlowsQuery{Range: api.Range{From: at}, Paging: api.Paging{Limit: 5}, Filter: "a && b"}
	if got, want := queryParams(q).Encode(), "filter=a+%26%26+b&from=2026-01-02T02%3A04%3A05.000000006Z&limit=5"; got != want {
		t.Errorf("values = %s; want %s", got, want)
	}
}

// scriptedServer serves the given answers in order; the last one repeats.
func scriptedServer(t *testing.T, answers ...http.HandlerFunc) *Client {
	t.Helper()
	i := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[min(i, len(answers)-1)](w, r)
		i++
	}))
	tr := &http.Transport{}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	c, err := New(s.URL, "", &http.Client{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOddAnswers: unexpected responses of proxies and older servers cause an error
// that describes them, not a panic.
func TestOddAnswers(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"Bad Gateway (502)": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) },
		"Not Found (404)": func(w http.ResponseWriter,
			_ *http.Request,
		) {
			http.Error(w, `{"detail":7}`, http.StatusNotFound)
		},
		"read response": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		if _, err := scriptedServer(t, answer).Health(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Health = %v; want %q", err, want)
		}
	}
	c, err := New("http://127.0.0.1:1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "request to http://127.0.0.1:1: ") {
		t.Errorf("Health of an unreachable server = %v", err)
	}
}

// TestEventsResume: the client reconnects with the last event id, skips heartbeats
// and unknown events, and stops when it is refused.
func TestEventsResume(t *testing.T) {
	var lasts []string
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			lasts = append(lasts, r.Header.Get("Last-Event-ID"))
			fmt.Fprint(w, text)
		}
	}
	c := scriptedServer(t,
		stream("retry: 2000\n\n: heartbeat\n\nid: a-1\nevent: fault\ndata: {\"id\":\"f1\"}\n\nid: a-2\nevent: fau"),
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
		stream("id: a-2\nevent: gossip\ndata: {}\n\nid: a-3\nevent: fault\ndata: {\"id\":\"f2\"}\n\n"),
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
	)
	var got []string
	var p *Problem
	for e, err := range c.Events(context.Background()) {
		if err != nil {
			if !errors.As(err, &p) || p.Status != 403 {
				t.Errorf("ended with %v", err)
			}
			break
		}
		got = append(got, e.(api.Fault).ID)
	}
	if fmt.Sprint(got) != "[f1 f2]" || fmt.Sprint(lasts) != "[ a-1]" || p == nil {
		t.Errorf("events %v with Last-Event-IDs %q, end %v", got, lasts, p)
	}
}
