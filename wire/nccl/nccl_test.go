package nccl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// inspector is the Inspector's output: a collective, a verbose one, and a send.
const inspector = `{"header":{"id":"0x7f8c496ae9f661","rank":2,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1748030377748202,"hostname":"node7.example","pid":1639453},"coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,"coll_exec_time_us":61974,"coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119099}}
{"header":{"id":"0xe6","rank":4,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v5.0","git_rev":"x","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1752867229276385,"hostname":"node8","pid":7},"coll_perf":{"coll":"ReduceScatter","coll_sn":3,"coll_msg_size_bytes":2048,"coll_exec_time_us":5663.5,"coll_timing_source":"kernel_gpu","event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[]},"event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[{"channel_id":0,"kernel_start_ts":1752867229235181}]}}}
{"header":{"id":"0xe6","rank":4,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v5.0","dump_timestamp_us":1752867229276385,"hostname":"node8","pid":7},"p2p_perf":{"p2p":"Send","p2p_sn":1,"p2p_peer":2}}
`

// flightRecorder is a dump of version 2.10: keys in order of the alphabet, as it writes them.
const flightRecorder = `{"comm_lib_version":"2.27.5","entries":[
{"collective_seq_id":7,"duration_ms":41.5,"input_dtypes":["Float","BFloat16"],"input_sizes":[[1000,10],[3]],"is_p2p":false,"op_id":9,"output_dtypes":["Float"],"output_sizes":[[1000]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","record_id":11,"retired":true,"state":"completed","thread_id":"140","thread_name":"pt_main","time_created_ns":1748030377748202000,"time_discovered_completed_ns":1748030377848202000,"time_discovered_started_ns":1748030377758202000,"timeout_ms":600000},
{"collective_seq_id":7,"input_dtypes":["Float"],"input_sizes":[[4]],"is_p2p":false,"op_id":10,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","record_id":12,"state":"completed","time_created_ns":1748030377748202001},
{"collective_seq_id":7,"input_dtypes":["Float"],"input_sizes":[[4]],"is_p2p":true,"op_id":11,"p2p_seq_id":1,"pg_id":0,"process_group":["0","default_pg"],"profiling_name":"nccl:send 0->1","record_id":13,"state":"completed","time_created_ns":1748030377748202002},
{"collective_seq_id":8,"input_dtypes":["Mystery"],"input_sizes":[[4]],"is_p2p":false,"op_id":12,"pg_id":1,"process_group":["5","undefined"],"profiling_name":"nccl:_all_gather_base","record_id":14,"state":"started","time_created_ns":1748030377948202000}],
"nccl_comm_state":{"0x1":{"state":"fine"}},"pg_config":{"0":{"desc":"default_pg","name":"0","ranks":"[0, 1, 2, 3]"}},"pg_status":{},"version":"2.10"}`

// ras is the sample of NVIDIA's manual, with one more rank.
const ras = `{
  "nccl_version": "2.29.1", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2025-12-19 13:06:53",
  "communicators_count": 1,
  "communicators": [{
    "hash": "0xae94423cfbb2ef4a", "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e", "size": 3, "ranks_count": 2, "missing_ranks_count": 1,
    "ranks": [
      {"rank": 0, "host": "172.16.64.245", "pid": 1524344, "cuda_dev": 0, "nvml_dev": 0,
       "status": {"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false, "abort_flag": false},
       "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 12}},
      {"rank": 2, "host": "172.16.64.246", "status": {"init_state": 0, "async_error": 2}, "collective_counts": {"AllReduce": 11}}
    ],
    "missing_ranks": [
      {"rank": 1, "host": "172.16.64.245", "pid": 1524345, "cuda_dev": 1, "nvml_dev": 1, "status": {"unresponsive": true, "considered_dead": false}}
    ]
  }],
  "ras": {"collection_time_sec": 0.000, "timeouts_count": 0}
}`

func TestReadRAS(t *testing.T) {
	d, err := Read(strings.NewReader(ras), -1, 10)
	if err != nil {
		t.Fatal(err)
	}
	g := Group{ID: "0xae94423cfbb2ef4a/0xb7e7187447156001:0xb8242ed28a71381e", Size: 3}
	at := time.Date(2025, 12, 19, 13, 6, 53, 0, time.UTC)
	want := &Dump{Members: []Member{
		{
			Group: g, Rank: 0, Host: "172.16.64.245", Time: at,
			Launched: map[string]uint64{"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 12},
		},
		{Group: g, Rank: 2, Host: "172.16.64.246", Time: at, Error: "async_error 2", Launched: map[string]uint64{"AllReduce": 11}},
		{Group: g, Rank: 1, Host: "172.16.64.245", Time: at, Missing: true},
	}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("read %+v\nwant %+v", d, want)
	}
}

func TestReadInspector(t *testing.T) {
	d, err := Read(strings.NewReader(inspector), -1, 10)
	if err != nil {
		t.Fatal(err)
	}
	end := int64(len(inspector) - 1) // before the last newline
	want := &Dump{Grows: true, End: end, Skipped: 1, Records: []Record{
		{
			Group: Group{ID: "0x7f8c496ae9f661", Size: 8}, Rank: 2, Host: "node7.example", Op: "AllReduce", Seq: 1407, Bytes: 17179869184,
			Time: time.UnixMicro(1748030377748202).UTC(), Duration: 61974 * time.Microsecond,
		},
		{
			Group: Group{ID: "0xe6", Size: 8}, Rank: 4, Host: "node8", Op: "ReduceScatter", Seq: 3, Bytes: 2048,
			Time: time.UnixMicro(1752867229235059).UTC(), Duration: 5663500 * time.Nanosecond,
		},
	}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("read %+v\nwant %+v", d, want)
	}
	for _, n := range []int{len(inspector) - 20, 100, 20} { // a process that was killed
		if d, err := Read(strings.NewReader(inspector[:n]), -1, 10); err != nil || !d.Cut {
			t.Errorf("first %d bytes: %+v, %v; want what is whole", n, d, err)
		}
	}
	first := int64(strings.IndexByte(inspector, '\n'))
	if d, err := Read(strings.NewReader(inspector), -1, 1); err != nil || d.End != first || !d.Full || len(d.Records) != 1 {
		t.Errorf("at most one record: %+v, %v", d, err)
	}
}

func TestReadFlightRecorder(t *testing.T) {
	d, err := Read(strings.NewReader(flightRecorder), 3, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := &Dump{Skipped: 1, Repeated: 1, Records: []Record{
		{
			Group: Group{ID: "0", Title: "default_pg", Ranks: "[0, 1, 2, 3]", Size: 4}, Rank: 3, Op: "all_reduce", Seq: 7, Bytes: 40006,
			Time: time.Unix(0, 1748030377748202000).UTC(), Duration: 41500 * time.Microsecond,
		},
		{
			Group: Group{ID: "5", Title: "undefined"}, Rank: 3, Op: "_all_gather_base", Seq: 8,
			Time: time.Unix(0, 1748030377948202000).UTC(), Waiting: true,
		},
	}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("read %+v\nwant %+v", d, want)
	}
}

// TestReadMore: what Read has left of a file that grows is read from where it ended, once.
func TestReadMore(t *testing.T) {
	all, err := Read(strings.NewReader(inspector), -1, 10)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(inspector) {
		d, err := Read(strings.NewReader(inspector[:n]), -1, 10)
		if err != nil {
			if n > len(`{"header"`) {
				t.Fatalf("first %d bytes: %v", n, err)
			}
			continue
		}
		more, err := ReadMore(strings.NewReader(inspector[d.End:]), 10)
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", d.End, n, err)
		}
		both := append(d.Records, more.Records...)
		if !reflect.DeepEqual(both, all.Records) || d.End+more.End != all.End || d.Skipped+more.Skipped != all.Skipped {
			t.Fatalf("after %d of %d bytes: %+v to %d; want %+v to %d", d.End, n, both, d.End+more.End, all.Records, all.End)
		}
	}
	if d, err := ReadMore(strings.NewReader("\n"), 10); err != nil || d.End != 0 || len(d.Records) != 0 {
		t.Errorf("a newline: %+v, %v; want no entries", d, err)
	}
}

// TestErrors: what cannot be read is named, with its place.
func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, one := range []struct{ text, want string }{
		{"", "an empty file"},
		{"\x80\x02}q\x00", "a Python pickle, want JSON"},
		{"[1]", "neither a flight recorder dump"},
		{"{}", "neither a flight recorder dump"},
		{`{"a":1}`, "neither a flight recorder dump"},
		{`{"version":"1.5","entries":[]}`, `flight recorder version "1.5", want 2`},
		{`{"version":"2.4","entries":{}}`, "entries is no list"},
		{`{"version":"2.4","entries":[{"process_group":"0"}]}`, "entries 0: at byte"},
		{`{"version":"2.4","entries":[{"process_group":["0"]}]}`, "entries 0: process_group has 1 values"},
		{`{"version":"2.4","entries":[{"process_group":["0","` + long + `"]}]}`, "entries 0: process_group of 300 bytes, want at most 256"},
		{`{"version":"2.4","entries":[{"process_group":["0","a"],"duration_ms":-1}]}`, "duration_ms -1, want 0 to 1e9"},
		{`{"version":"2.4","entries":[`, "unexpected EOF"},
		{flightRecorder, "does not have its rank"},
		{`{"nccl_version":"2.29.1","timestamp":"noon"}`, `timestamp "noon", want one such as`},
		{`{"nccl_version":"2.29.1","communicators":{}}`, "communicators is no list"},
		{`{"nccl_version":"2.29.1","communicators":[{"ranks":[{"rank":-1}]}]}`, "communicators 0: ranks 0: rank -1, want 0"},
		{strings.Replace(inspector, "v4.0", "v9.0", 1), `inspector_output_format_version "v9.0", want v4 or v5`},
		{strings.Replace(inspector, `"rank":2`, `"rank":8`, 1), "rank 8 of n_ranks 8"},
		{strings.Replace(inspector, `"rank":4`, `"rank":-4`, 1), "rank -4, want 0 to"},
		{strings.Replace(inspector, "node8", long, 1), "hostname of 300 bytes"},
		{strings.Replace(inspector, "61974", "-61974", 1), "coll_exec_time_us -61974"},
		{`{"header":{"id":"` + strings.Repeat("x", 3<<20) + `"}}`, "a value of more than 1048576 bytes"},
		{`{"version":"2.4","entries":[{"profiling_name":"` + strings.Repeat("x", 3<<20) + `"}]}`, "a value of more than 1048576 bytes"},
	} {
		if d, err := Read(strings.NewReader(one.text), -1, 10); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%.80q: %+v, %v; want an error with %q", one.text, d, err, one.want)
		}
	}
	if _, err := Read(strings.NewReader("\x80"), -1, 10); !errors.Is(err, ErrPickle) {
		t.Error(err)
	}
}

// TestLargeDump: the bound is of an entry, not of a file.
func TestLargeDump(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"entries":[`)
	const n = 9000
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"collective_seq_id":%d,"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","thread_name":%q}`, i, strings.Repeat("t", 300))
	}
	fmt.Fprintf(&b, `],"nccl_comm_state":{"0x1":{"a":%q,"b":%q}},"version":"2.10"}`, strings.Repeat("a", 700_000), strings.Repeat("b", 700_000))
	d, err := Read(strings.NewReader(b.String()), 0, MaxRecords)
	if err != nil || len(d.Records) != n {
		t.Fatalf("%d bytes: %v", b.Len(), err)
	}
}

func TestReadPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := ReadPath(dir, nil); err == nil || !strings.Contains(err.Error(), "has no files") {
		t.Errorf("an empty folder: %v", err)
	}
	write("nccl_trace_rank_12", flightRecorder)
	write("rank3.json", flightRecorder)
	write(".hidden", "no")
	hosts, err := ReadHosts(strings.NewReader("# rank host\n12 h4\n\n3   h1\n"))
	if err != nil {
		t.Fatal(err)
	}
	d, files, err := ReadPath(dir, hosts)
	if err != nil || files != 2 {
		t.Fatalf("%d files: %v", files, err)
	}
	var got []string
	for _, r := range d.Records {
		got = append(got, fmt.Sprint(r.Rank, r.Host))
	}
	if fmt.Sprint(got) != "[12 h4 12 h4 3 h1 3 h1]" && fmt.Sprint(got) != "[12h4 12h4 3h1 3h1]" {
		t.Errorf("ranks and hosts %v", got)
	}
	write("notes.txt", "hello")
	if _, _, err := ReadPath(dir, nil); err == nil || !strings.Contains(err.Error(), "notes.txt: neither a flight recorder") {
		t.Errorf("another file: %v", err)
	}
	for text, want := range map[string]string{
		"1": "line 1: 1 words", "1 a\n1 b": "line 2: rank 1 is on a, too", "x h1": `line 1: rank "x"`, "-1 h1": "line 1: rank -1, want 0",
	} {
		if _, err := ReadHosts(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank file %q: %v; want %q", text, err, want)
		}
	}
}

// FuzzRead: whatever a file holds, reading it ends, keeps the limit, and what it returns is
// within its bounds.
func FuzzRead(f *testing.F) {
	for _, text := range []string{inspector, flightRecorder, ras, "{", `{"header":{}}`, `{"entries":[],"version":"2.1"}`, "\x80\x02", `{"header":1,"x":[[[{}]]]}`} {
		f.Add([]byte(text), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, rank int) {
		rank = min(max(rank, -1), maxRank)
		d, err := Read(strings.NewReader(string(data)), rank, 5)
		if err != nil {
			return
		}
		if len(d.Records) > 5 || len(d.Members) > 5 {
			t.Fatalf("%d records and %d members, want at most 5", len(d.Records), len(d.Members))
		}
		for _, r := range d.Records {
			if r.Rank < 0 || r.Rank > maxRank || r.Duration < 0 || len(r.Op) > maxName || len(r.Group.ID) > maxName || len(r.Host) > maxName {
				t.Fatalf("%+v is out of bounds", r)
			}
		}
	})
}
