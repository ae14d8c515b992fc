package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ncclRing is a run of a ring whose rank on h6 computes for longer than the others.
const ncclRing = `
name: ring
seed: 3
duration: 1500ms
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 4000, buffer: 2MB, ecn: [{kmin: 40KB, kmax: 160KB, pmax: 20%}]}
telemetry: [{kind: flowset, slot: 10ms, flows: 1000, ipv6: false}]
traffic:
  - {kind: all-reduce, name: dense, hosts: [h2, h6, h10, h14], bytes: 2MB, iterations: 40, compute: 60ms}
faults: [{kind: straggler, host: h6, factor: 1.8}]
`

// ncclHosts are the hosts of the ranks; one is written with its domain.
var ncclHosts = []string{"h2", "h6.rack1.example", "h10", "h14"}

// writeInspector writes what the Inspector writes of such a ring: each step an AllReduce that
// the rank on h6 enters 50 ms after the others.
func writeInspector(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for rank, host := range ncclHosts {
		var b strings.Builder
		for step := range 10 {
			took := 80_000 // µs: waiting and transfer
			if rank == 1 {
				took = 30_000
			}
			fmt.Fprintf(&b, `{"header":{"id":"0x7f8c","rank":%d,"n_ranks":4,"nnodes":4},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":%d,"hostname":%q,"pid":1},`+
				`"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":2000000,"coll_exec_time_us":%d}}`+"\n", rank, 1748030377000000+140_000*step, host, step+1, took)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-pid1.log", host)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeFlightRecorder writes the same as dumps of the flight recorder.
func writeFlightRecorder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for rank := range ncclHosts {
		var entries []string
		for step := range 10 {
			ms := 80
			if rank == 1 {
				ms = 30
			}
			entries = append(entries, fmt.Sprintf(`{"collective_seq_id":%d,"duration_ms":%d,"input_dtypes":["Float"],"input_sizes":[[500000]],"is_p2p":false,`+
				`"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","state":"completed","time_created_ns":%d}`, step+1, ms, 1748030377000000000+140_000_000*step))
		}
		text := fmt.Sprintf(`{"entries":[%s],"pg_config":{"0":{"desc":"default_pg","name":"0","ranks":"[0, 1, 2, 3]"}},"version":"2.10"}`, strings.Join(entries, ","))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_trace_rank_%d.json", rank)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNCCLBesideFlows: the Inspector's records and the flow records of the ring are of one
// job, and name the same late rank.
func TestNCCLBesideFlows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.yaml")
	if err := os.WriteFile(file, []byte(ncclRing), 0o600); err != nil {
		t.Fatal(err)
	}
	r := queryScenario[ncclReport](t, 3, "jobs", "--nccl", writeInspector(t), "--scenario", file)
	if len(r.Groups) != 1 || len(r.Jobs) != 1 || !r.Complete || r.Files != 4 || r.Records != 40 {
		t.Fatalf("%+v; want one group of 40 records in 4 files, and one job", r)
	}
	g := r.Groups[0]
	if g.Job != r.Jobs[0].Name || g.Steps != 10 || g.PeriodNs != 140e6 || g.TransferNs != 30e6 || g.WaitingNs != 50e6 {
		t.Errorf("group %+v; want job %s and 10 steps of 140 ms, 30 ms of transfer, 50 ms of waiting", g, r.Jobs[0].Name)
	}
	if len(g.Findings) != 1 || !strings.HasPrefix(g.Findings[0], "compute: rank 1 (h6.rack1.example) enters the collectives of a step 50 ms later") {
		t.Errorf("findings %q", g.Findings)
	}
	if f := r.Jobs[0].Findings[0]; f.Cause != "compute" || f.Host != "h6" {
		t.Errorf("flow records say %+v; want the late rank h6", f)
	}
}

// writeRAS writes two reports of ncclras -f json, between which rank 1 has not gone on.
func writeRAS(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for n := range 2 {
		text := fmt.Sprintf(`{"nccl_version":"2.29.1","timestamp":"2025-12-19 13:0%d:00","communicators":[{"hash":"0xae","size":3,`+
			`"ranks":[{"rank":0,"host":"10.0.0.2","status":{},"collective_counts":{"AllReduce":12}},{"rank":1,"host":"10.0.0.3","status":{},"collective_counts":{"AllReduce":11}}],`+
			`"missing_ranks":[{"rank":2,"host":"10.0.0.4","status":{"unresponsive":true}}]}]}`, n)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("ras%d.json", n)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNCCLAlone: without a controller the dumps are shown, and why there are no flow records.
// Hosts of flight recorder dumps come from a rank file.
func TestNCCLAlone(t *testing.T) {
	dir := writeFlightRecorder(t)
	ranks := filepath.Join(t.TempDir(), "ranks")
	if err := os.WriteFile(ranks, []byte("0 h2\n1 h6\n2 h10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pickle := filepath.Join(t.TempDir(), "nccl_trace_rank_0")
	if err := os.WriteFile(pickle, []byte("\x80\x02}."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		code int
		want []string
		args []string
	}{
		{3, []string{
			"default_pg (0): 4 of 4 ranks", "10 steps of 140 ms: transfer 30 ms, waiting 50 ms", "compute: rank 1 (h6) enters the collectives of a step 50 ms later",
			"all_reduce  2 MB   10     30 ms     50 ms", "without flow records: ", "3     -     -      all_reduce 10",
		}, []string{"--nccl", dir, "--ranks", ranks}},
		{3, []string{
			"NCCL: 2 files, 0 collectives of 0 groups, 1 communicator of RAS", "0xae: 3 of 3 ranks, 2 reports of RAS", "absent: rank 2 (10.0.0.4) does not answer RAS",
			"absent: rank 1 (10.0.0.3) has launched 1 AllReduce less than others, and no collective from the first report to the last", "0     10.0.0.2  12        ok",
		}, []string{"--nccl", writeRAS(t)}},
		{1, []string{"nccl_trace_rank_0: a Python pickle, want JSON: have each rank write torch"}, []string{"--nccl", pickle}},
		{2, []string{"--ranks has the hosts of the ranks of --nccl"}, []string{"--ranks", ranks}},
		{2, []string{"--nccl shows all groups of ranks: want no JOB"}, []string{"--nccl", dir, "h1+3"}},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"jobs", "--server", "http://127.0.0.1:9"}, one.args...)
		if code := (&app{}).run(args, &out, &errs); code != one.code {
			t.Errorf("weft %q exits with %d, want %d", args, code, one.code)
		}
		for _, want := range one.want {
			if text := out.String() + errs.String(); !strings.Contains(text, want) {
				t.Errorf("weft %q prints\n%s\nwant %q in it", args, text, want)
			}
		}
	}
}
