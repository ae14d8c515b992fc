package report

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
)

var update = flag.Bool("update", false, "write the golden files")

// smallRun has one of everything: IPv4 and IPv6, finished and not, a name that
// CSV must quote, a pause that is refreshed and one that runs out.
func smallRun() *Run {
	v4 := func(src, dst uint32, sport uint16) model.FlowKey {
		return model.FlowKey{
			Src: model.Addr4(0x0b000001 + src<<8), Dst: model.Addr4(0x0b000001 + dst<<8),
			SrcPort: sport, DstPort: 100, Proto: model.UDP,
		}
	}
	v6 := model.FlowKey{
		Src: model.Addr{Hi: 0xfd00 << 48, Lo: 0x0a0b0c0d01020304}, Dst: model.Addr{Hi: 0xfd00 << 48, Lo: 3},
		SrcPort: 40000, DstPort: 80, Proto: model.TCP, V6: true,
	}
	return &Run{
		Title: "small run", Fabric: "star: 4 hosts, 1 switch, 4 links of 100Gb/s", Seed: 42,
		End: 100_000, PacketHops: 1234, Wall: 2 * time.Millisecond, Interval: 50 * time.Microsecond,
		Flows: []FlowResult{
			{Src: "h0", Dst: "h3", Key: v4(0, 3, 10000), Priority: 3, Transport: "dcqcn", Group: "incast", Bytes: 100_000, Start: 1000, Finish: 31_000, Finished: true, Ideal: 10_000, Retransmitted: 2},
			{Src: "h1", Dst: "h3", Key: v4(1, 3, 10001), Priority: 3, Transport: "dcqcn", Group: "incast", Bytes: 1000, Start: 2000, Finish: 5000, Finished: true, Ideal: 3100},
			{Src: "h2", Dst: "h3", Key: v4(2, 3, 10002), Priority: 3, Transport: "dcqcn", Group: "incast", Bytes: 2_000_000, Delivered: 900_000, Start: 0, Ideal: 170_000},
			{Src: `rack 1, "left"`, Dst: "h3", Key: v6, Transport: "tcp", Group: "web", Bytes: 20_000, Start: 3000, Finish: 31_000, Finished: true, Ideal: 8000},
		},
		Pauses: []PauseEvent{
			{At: 4000, Node: "h0", ID: 0, Port: 1, Priority: 3, Pause: true, Hold: 5000},
			{At: 8000, Node: "h0", ID: 0, Port: 1, Priority: 3, Pause: true, Hold: 5000},
			{At: 10_000, Node: "h0", ID: 0, Port: 1, Priority: 3},
			{At: 12_000, Node: "s4", ID: 4, Switch: true, Port: 2, Priority: 3, Pause: true, Hold: 5000},
		},
		Drops: []Drop{
			{Node: "s4", ID: 4, Port: 3, Reason: "buffer full", Packets: 2},
			{Node: "s4", ID: 4, Reason: "no route", Packets: 7},
			{Node: "s4", ID: 4, Port: 1, Reason: "buffer full", Packets: 1},
		},
		Ports: []PortSeries{
			{Node: "s4", ID: 4, Port: 1, Peer: "h0", Rate: 100 * model.Gbps, Samples: []Sample{{At: 50_000}, {At: 100_000}}},
			{Node: "s4", ID: 4, Port: 4, Peer: "h3", Rate: 100 * model.Gbps, Samples: []Sample{
				{At: 50_000, Queue: 250_000, Tx: 625_000, Paused: 0.25}, {At: 100_000, Queue: 1500, Tx: 312_500},
			}},
		},
		Notes: []string{"PFC cannot fire at s4: Xoff of 1.2 MB is above what 3 senders can queue."},
	}
}

// TestGolden compares every text file of a report. After -update, read the
// diff.
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	if *update {
		dir = "testdata"
	}
	if err := smallRun().WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("<title>small run</title>")) {
		t.Errorf("report.html holds no title (error %v)", err)
	}
	if *update { // the page changes with its style
		os.Remove(filepath.Join(dir, "report.html"))
	}
	for _, name := range []string{"fct.txt", "pfc.txt", "flows.csv", "ports.csv", "pauses.csv", "summary.txt", "summary.json"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from its golden file (-want +got):\n%s", name, diff)
		}
	}
}

// TestHPCCColumns checks the two foreign formats against lines written by
// hand.
func TestHPCCColumns(t *testing.T) {
	r := smallRun()
	var fct, pfc bytes.Buffer
	if err := errors.Join(r.WriteFCT(&fct), r.WritePFC(&pfc)); err != nil {
		t.Fatal(err)
	}
	if want := "0b000101 0b000301 10001 100 1000 2000 3000 3100\n"; !strings.HasPrefix(fct.String(), want) {
		t.Errorf("fct.txt starts %q; want the flow that finished first, %q", fct.String(), want)
	}
	if want := "fd000000000000000a0b0c0d01020304 fd000000000000000000000000000003 40000 80 20000 3000 28000 8000\n"; !strings.HasSuffix(fct.String(), want) {
		t.Errorf("fct.txt ends %q; want the later of two flows that finished at once, %q", fct.String(), want)
	}
	if want := "4000 0 0 1 1\n8000 0 0 1 1\n10000 0 0 1 0\n12000 4 1 2 1\n"; pfc.String() != want {
		t.Errorf("pfc.txt is %q; want %q", pfc.String(), want)
	}
}

func TestEqualRunsGiveEqualBytes(t *testing.T) {
	s := shape{flows: 300, ports: 12, samples: 100, bursts: 3, stuck: 1}
	for name, write := range writers() {
		var a, b bytes.Buffer
		if err := errors.Join(write(invent(s), &a), write(invent(s), &b)); err != nil {
			t.Fatal(err)
		}
		if a.Len() == 0 || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s of equal runs: %d and %d bytes, not the same", name, a.Len(), b.Len())
		}
	}
}

// TestNoWallTimeWithoutWall holds what makes outputs of replays comparable.
func TestNoWallTimeWithoutWall(t *testing.T) {
	r := smallRun()
	r.Wall = 0
	for name, write := range writers() {
		var b bytes.Buffer
		if err := write(r, &b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "wall") {
			t.Errorf("%s speaks of wall time that is zero", name)
		}
	}
}

func writers() map[string]func(*Run, io.Writer) error {
	return map[string]func(*Run, io.Writer) error{
		"WriteFCT": (*Run).WriteFCT, "WritePFC": (*Run).WritePFC,
		"WriteQueueLengths": (*Run).WriteQueueLengths, "WritePerfetto": (*Run).WritePerfetto,
		"WriteFlowsCSV": (*Run).WriteFlowsCSV, "WritePortsCSV": (*Run).WritePortsCSV,
		"WriteHTML": (*Run).WriteHTML,
		"WriteText": func(r *Run, w io.Writer) error { return r.Summarize().WriteText(w) },
		"WriteJSON": func(r *Run, w io.Writer) error { return r.Summarize().WriteJSON(w) },
	}
}

type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWritersReportErrors(t *testing.T) {
	for name, write := range writers() {
		if err := write(smallRun(), fullDisk{}); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk = %v; want %v", name, err, errFull)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := smallRun().WriteDir(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("WriteDir(%s) = %v; want an error that names the file in the way", file, err)
	}
}
