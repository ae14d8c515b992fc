package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/stream/member"
)

// metrics returns what a member of all roles exports.
func metrics(t *testing.T) string {
	t.Helper()
	s, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	one, err := member.New(member.Config{Group: LeadGroup, ID: "m", Partitions: 1, Interval: time.Second}, inproc.NewLeases(),
		func(context.Context, int, uint64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	m := &Metrics{
		Streams: Streams{Flows: s, Lead: s, Partitions: 1}, Groups: map[string]*member.Member{LeadGroup: one, FlowGroup: one},
		Publisher: &Publisher{}, Analyzers: &Analyzers{}, Leader: &Leader{},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx, l) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	stop()
	if e := <-ended; e != nil || err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("Serve = %v, /metrics = %d, %v", e, answer.StatusCode, err)
	}
	return string(text)
}

// TestMetricsExist: every metric of the cluster's dashboard and manual is exported by
// members, and every exported one is in the manual. Others are the API's.
func TestMetricsExist(t *testing.T) {
	text := metrics(t)
	name := regexp.MustCompile(`\bweft_(cluster|stream)_[a-z_]+`)
	pages := map[string]string{}
	for _, file := range []string{"deploy/grafana/cluster.json", "docs/cluster.md"} {
		b, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		pages[file] = string(b)
		named := name.FindAllString(string(b), -1)
		if len(named) < 10 {
			t.Errorf("%s has %d metrics; want many", file, len(named))
		}
		for _, n := range named {
			if !strings.Contains(text, "\n"+n+" ") && !strings.Contains(text, "\n"+n+"{") {
				t.Errorf("%s has %s, which is not exported", file, n)
			}
		}
	}
	for _, n := range name.FindAllString(text, -1) {
		if !strings.Contains(pages["docs/cluster.md"], "`"+n+"`") {
			t.Errorf("%s is exported and not in docs/cluster.md", n)
		}
	}
	// Labels that queries select by.
	selector := regexp.MustCompile(`(weft_[a-z_]+)\{([a-z]+)=\\"([a-z ]+)\\"`)
	for _, m := range selector.FindAllStringSubmatch(pages["deploy/grafana/cluster.json"], -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `\{[^}]*` + m[2] + `="` + m[3] + `"`).MatchString(text) {
			t.Errorf("no series %s with %s=%q", m[1], m[2], m[3])
		}
	}
}
