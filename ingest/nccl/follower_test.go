package nccl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// entry is a collective of the Inspector.
func entry(rank, seq int) string {
	return fmt.Sprintf(`{"header":{"id":"0xe6","rank":%d,"n_ranks":2},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":%d,"hostname":"gpu%d"},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":8,"coll_exec_time_us":5}}`+"\n",
		rank, 1748030377748202+seq, rank, seq)
}

func flight(seqs ...int) string {
	var list []string
	for _, n := range seqs {
		list = append(list, fmt.Sprintf(`{"process_group":["0","default_pg"],"collective_seq_id":%d,"profiling_name":"nccl:all_reduce","time_created_ns":%d,"state":"completed"}`, n, n))
	}
	return `{"entries":[` + strings.Join(list, ",") + `],"version":"2.4"}`
}

// folder is a folder that is followed.
type folder struct {
	*testing.T
	dir   string
	files *files
	got   []string
}

func newFolder(t *testing.T) *folder {
	dir := t.TempDir()
	return &folder{T: t, dir: dir, files: newFiles([]string{dir})}
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) append(name, text string) {
	f.Helper()
	file, err := os.OpenFile(f.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		f.Fatal(err)
	}
	if err := file.Close(); err != nil {
		f.Fatal(err)
	}
}

// read returns the collectives that are new, and the error of the folder.
func (f *folder) read() (string, error) {
	f.got = nil
	state := f.files.read(func(d *nccl.Dump) {
		for _, r := range d.Records {
			f.got = append(f.got, fmt.Sprintf("%d:%d", r.Rank, r.Seq))
		}
	})
	return strings.Join(f.got, " "), state[f.dir]
}

func (f *folder) want(want string) {
	f.Helper()
	if got, err := f.read(); got != want || err != nil {
		f.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

// TestFollowFiles: each collective of a growing file is read once, an entry that is being
// written when it is whole; a file that was replaced is read anew.
func TestFollowFiles(t *testing.T) {
	f := newFolder(t)
	f.append("a.log", entry(0, 1)+entry(0, 2))
	f.want("0:1 0:2")
	f.want("")
	half := entry(0, 3)
	f.append("a.log", half[:40])
	f.append("b.log", entry(1, 1))
	f.want("1:1")
	f.append("a.log", half[40:]+entry(0, 4))
	f.want("0:3 0:4")
	if err := os.WriteFile(f.path("a.log"), []byte(entry(0, 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	f.want("0:9")
	if err := os.Remove(f.path("a.log")); err != nil {
		t.Fatal(err)
	}
	f.want("")
	if len(f.files.known) != 1 {
		t.Errorf("%d files are known; want that which is left", len(f.files.known))
	}
}

// TestFollowDumps: a dump of the flight recorder is read whole when it was written anew.
func TestFollowDumps(t *testing.T) {
	f := newFolder(t)
	f.append("nccl_trace_rank_7", flight(1, 2))
	f.want("7:1 7:2")
	f.want("")
	if err := os.WriteFile(f.path("nccl_trace_rank_7"), []byte(flight(2, 3, 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	f.want("7:2 7:3 7:4")
}

// TestFollowBad: what cannot be read is counted with a reason, and the other files are read.
func TestFollowBad(t *testing.T) {
	f := newFolder(t)
	if err := syscall.Mkfifo(f.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.append("good.log", entry(0, 1))
	f.append("text.log", "NCCL INFO nothing of ours")
	f.append("grows.log", entry(1, 1))
	if got, err := f.read(); got != "0:1 1:1" && got != "1:1 0:1" || err == nil || !strings.Contains(err.Error(), "text.log") {
		t.Fatalf("read %q, %v; want what can be read, and text.log named", got, err)
	}
	if n := f.files.counts.notUnderstood.Load(); n != 1 {
		t.Errorf("%d not understood; want 1", n)
	}
	if _, err := f.read(); err != nil || f.files.counts.notUnderstood.Load() != 1 {
		t.Errorf("%v, %d not understood; want a file that did not change to count once", err, f.files.counts.notUnderstood.Load())
	}
	f.append("grows.log", `{"header":{"rank":-1}}`+"\n"+entry(1, 2))
	if got, err := f.read(); got != "" || err == nil {
		t.Errorf("read %q, %v; want an error", got, err)
	}
	f.append("grows.log", entry(1, 3))
	f.want("")
	gone := newFiles([]string{f.path("nothing")})
	if state := gone.read(nil); state[f.path("nothing")] == nil || gone.counts.unreadable.Load() != 1 {
		t.Errorf("%v, %d unreadable; want an error for a folder that is missing", state, gone.counts.unreadable.Load())
	}
}

// TestFollow runs the whole source against a RAS service that starts later, and a folder.
func TestFollow(t *testing.T) {
	f := newFolder(t)
	f.append("0.log", entry(0, 1))
	s := startRAS(t, &rasServer{report: report})
	away := startRAS(t, &rasServer{})
	gone := away.Addr().String()
	away.Close()
	names := f.path("../names")
	if err := os.WriteFile(names, []byte("# of the management network\n172.16.0.1 h0\ngpu0 h0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &Config{Files: []string{f.dir}, RAS: []string{s.Addr().String(), gone}, Interval: 10 * time.Millisecond, Timeout: time.Minute, Hosts: names}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	taken := make(chan *nccl.Dump, 1000)
	d, err := cfg.NewDecoder(&source.Fabric{}, source.Output{Collectives: func(d *nccl.Dump) int { taken <- d; return len(d.Members) / 3 }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := cfg.OpenSocket(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, nil) }()
	var records, reports int
	for records == 0 || reports < 2 {
		dump := <-taken
		for _, r := range dump.Records {
			if records++; r.Host != "h0" {
				t.Errorf("host %q; want h0", r.Host)
			}
		}
		if len(dump.Members) > 0 {
			if reports++; dump.Members[0].Host != "h0" || dump.Members[1].Host != "172.16.0.2" {
				t.Errorf("hosts of %+v; want h0 by the file, and the address", dump.Members)
			}
		}
	}
	for len(l.(source.AlertingListener).Alerts()) == 0 {
		<-taken // of the others, which go on meanwhile
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	lost := map[string]uint64{}
	for _, l := range l.Counters().Losses {
		lost[l.Reason] = l.Count
	}
	if lost["unreachable"] == 0 || lost["unknown host"] < 2 || records != 1 {
		t.Errorf("lost %v, %d collectives; want the service that is gone unreachable, a rank of each report unknown, one collective", lost, records)
	}
	if list := l.(source.AlertingListener).Alerts(); len(list) != 1 || !strings.Contains(list[0], gone) {
		t.Errorf("alerts %q; want %s", list, gone)
	}
}

func TestCheck(t *testing.T) {
	for text, change := range map[string]func(c *Config){
		"nccl.ras: \"node1\", want HOST:PORT":       func(c *Config) { c.RAS = []string{"node1"} },
		"nccl.ras: \"node1:0\", want HOST:PORT":     func(c *Config) { c.RAS = []string{"node1:0"} },
		"nccl.ras: \"n:1\" is there twice":          func(c *Config) { c.RAS = []string{"n:1", "n:1"} },
		"nccl.interval: 1ms, want 10ms to 1h":       func(c *Config) { c.Interval = time.Millisecond },
		"nccl.timeout: 1h0m0s, want 10ms to 5m":     func(c *Config) { c.Timeout = time.Hour },
		"nccl.files: 300 paths, want at most 256":   func(c *Config) { c.Files = make([]string, 300) },
		"nccl.ras: 300 addresses, want at most 256": func(c *Config) { c.RAS = make([]string, 300) },
	} {
		c := Source.NewConfig().(*Config)
		change(c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%v; want %s", err, text)
		}
	}
}
