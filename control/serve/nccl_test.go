package serve

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// TestServeFollowsNCCL: a job is known by the RAS service and by the Inspector's files; the rank
// that does not answer is its verdict, and health says which service is away.
func TestServeFollowsNCCL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answerRAS(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := away.Addr().String()
	away.Close()
	dir := t.TempDir()
	for rank, host := range []string{"h0", "h1"} {
		text := fmt.Sprintf(`{"header":{"id":"0xe6","rank":%d,"n_ranks":2},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1748030377748202,"hostname":%q},"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_exec_time_us":5}}`+"\n", rank, host)
		if err := os.WriteFile(filepath.Join(dir, host), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig(t)
	set(t, &cfg, "nccl.ras", l.Addr().String()+","+gone)
	set(t, &cfg, "nccl.files", dir)
	set(t, &cfg, "nccl.interval", "20ms")
	set(t, &cfg, "nccl.timeout", "10s")
	s := start(t, cfg)
	var list api.JobList
	var health api.Health
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if list, err = s.api.Jobs(t.Context(), api.Range{}); err != nil {
			t.Fatal(err)
		}
		if health, err = s.api.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 2 && len(health.Alerts) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, alerts %q; want two jobs, and the service that is away", list, health.Alerts)
		}
	}
	job := list.Items[0]
	if job.Name != "nccl:0xae" || job.From != "nccl" || job.Findings[0].Cause != "absent" || job.Findings[0].Host != "h4" || len(job.Groups) != 1 || job.Groups[0].Ranks[2].State != "missing" {
		t.Errorf("job %+v; want the ranks of RAS, of which that on h4 does not answer", job)
	}
	if job := list.Items[1]; job.Name != "nccl:0xe6" || len(job.Hosts) != 2 || job.Findings[0].Cause != "none" {
		t.Errorf("job %+v; want h0 and h1", job)
	}
	if text := strings.Join(health.Alerts, "\n"); health.State != "degraded" || !strings.Contains(text, gone+" is away") {
		t.Errorf("health %s, %q; want degraded, with %s", health.State, text, gone)
	}
}

// answerRAS answers one conversation as a RAS service does.
func answerRAS(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "CLIENT PROTOCOL "):
			fmt.Fprintln(c, "SERVER PROTOCOL 2")
		case line != "VERBOSE STATUS":
			fmt.Fprintln(c, "OK")
		default:
			fmt.Fprintln(c, `{"nccl_version":"2.29.1","timestamp":"2025-12-19 13:06:53","communicators":[{"hash":"0xae","size":3,`+
				`"ranks":[{"rank":0,"host":"h2","collective_counts":{"AllReduce":7}},{"rank":1,"host":"h3","collective_counts":{"AllReduce":7}}],`+
				`"missing_ranks":[{"rank":2,"host":"h4","status":{"unresponsive":true}}]}]}`)
			return
		}
	}
}
