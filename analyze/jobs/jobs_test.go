package jobs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

const slot = 10 * time.Millisecond

var epoch = time.Unix(1000, 0).UTC()

// recording makes flow records.
type recording struct{ list []record.FlowSlot }

// key is the flow from one host to another on a port.
func key(src, dst, port int) model.FlowKey {
	at := func(h, p int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(h + 1)}), uint16(p))
	}
	return model.NewFlowKey(at(src, port), at(dst, 4791), model.UDP)
}

// send records bytes of a flow over slots.
func (r *recording) send(src, dst, port, first, slots int, bytes uint64) {
	for i := range slots {
		n := bytes / uint64(slots)
		r.list = append(r.list, record.FlowSlot{
			Time: epoch.Add(time.Duration(first+i) * slot), Slot: slot, Flow: key(src, dst, port),
			Src: fmt.Sprintf("h%d", src), Dst: fmt.Sprintf("h%d", dst), Packets: n/1000 + 1, Bytes: n,
			Path: []record.FlowHop{{Switch: "tor0"}},
		})
	}
}

// exchange is one step of a ring or of an all-to-all; late is when its first host sends.
func (r *recording) exchange(hosts []int, all bool, port, first, slots, late int, bytes uint64) {
	for i, h := range hosts {
		wait := 0
		if i == 0 {
			wait = late
		}
		for k := 1; k < len(hosts); k++ {
			if all || k == 1 {
				r.send(h, hosts[(i+k)%len(hosts)], port, first+wait, slots, bytes)
			}
		}
	}
}

func names(hosts []int) (list []string) {
	for _, h := range hosts {
		list = append(list, fmt.Sprintf("h%d", h))
	}
	slices.SortFunc(list, compareNames)
	return list
}

// TestInferFindsJobs draws jobs on hosts of their own, flows that do not repeat between all
// hosts, and flows that always send.
func TestInferFindsJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).Draw(t, "hosts")
		var r recording
		var want []string
		for n := 0; len(order) >= 3; n++ {
			size := rapid.IntRange(3, min(6, len(order))).Draw(t, "size")
			hosts := order[:size]
			order = order[size:]
			all := rapid.Bool().Draw(t, "all-to-all")
			compute, slots := rapid.IntRange(2, 9).Draw(t, "compute"), rapid.IntRange(1, 5).Draw(t, "exchange")
			bytes := rapid.Uint64Range(100_000, 9_000_000).Draw(t, "bytes")
			at := rapid.IntRange(0, 5).Draw(t, "start")
			for at < 150 {
				stretched := slots + rapid.IntRange(0, 3).Draw(t, "contention") // time differs, bytes do not
				r.exchange(hosts, all, 100+n, at, stretched, 0, bytes)
				at += stretched + compute
			}
			pattern := Ring
			if all {
				pattern = AllToAll
			}
			want = append(want, fmt.Sprintf("%s %v", pattern, names(hosts)))
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "others") {
			src, dst := rapid.IntRange(0, 11).Draw(t, "src"), rapid.IntRange(0, 11).Draw(t, "dst")
			if src != dst {
				r.send(src, dst, 1000+i, rapid.IntRange(0, 140).Draw(t, "at"), rapid.IntRange(1, 10).Draw(t, "slots"), 5_000_000)
			}
		}
		r.send(0, 1, 2000, 0, 150, 20_000_000)
		r.send(1, 0, 2000, 0, 150, 20_000_000)
		var got []string
		for _, j := range NewActivity(r.list).Infer() {
			hosts := slices.Clone(j.Hosts)
			slices.SortFunc(hosts, compareNames)
			got = append(got, fmt.Sprintf("%s %v", j.Pattern, hosts))
			if len(j.Steps) < minSteps {
				t.Fatalf("%v has %d steps", j.Hosts, len(j.Steps))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("inferred %q; want %q", got, want)
		}
	})
}

// only returns the job that a recording shows.
func (r *recording) only(t *testing.T) *Job {
	t.Helper()
	list := NewActivity(r.list).Infer()
	if len(list) != 1 {
		t.Fatalf("%d jobs; want one", len(list))
	}
	return list[0]
}

// TestSteps: times are those of the flows.
func TestSteps(t *testing.T) {
	var r recording
	for i := range 12 {
		r.exchange([]int{3, 1, 2}, false, 7, 10*i, 4, 0, 400_000)
	}
	j := r.only(t)
	if j.Name != "h1+2" || strings.Join(j.Hosts, " ") != "h1 h2 h3" || j.Pattern != Ring {
		t.Errorf("%s: %v %v; want h1+2: ring h1 h2 h3", j.Name, j.Pattern, j.Hosts)
	}
	if j.Period != 10*slot || j.Exchange != 4*slot || j.Compute() != 6*slot || len(j.Steps) != 10 {
		t.Errorf("%d steps of %v, exchange %v; want 10 whole ones of 100ms, 40ms", len(j.Steps), j.Period, j.Exchange)
	}
	for _, c := range j.Cells {
		if c.Bytes != 400_000 || c.Took != 4*slot || c.Wait != 0 || c.Rate != 80*model.Mbps {
			t.Errorf("cell %+v; want 400 KB in 40ms", c)
		}
	}
	if f := j.Assess(&Evidence{HostRate: 100 * model.Mbps}); f[0].Cause != None {
		t.Errorf("found %+v; want nothing", f)
	}
}

// TestAssess: each fault is told by what it leaves.
func TestAssess(t *testing.T) {
	build := func(late int) *recording {
		var r recording
		for i := range 12 {
			r.exchange([]int{0, 1, 2, 3}, true, 7, 20*i, 3, late, 400_000)
		}
		return &r
	}
	for name, tc := range map[string]struct {
		late int
		e    Evidence
		want Finding
	}{
		"nothing":           {0, Evidence{}, Finding{Cause: None}},
		"late in the burst": {2, Evidence{}, Finding{Cause: Compute, Host: "h0"}},
		"late by a burst":   {9, Evidence{}, Finding{Cause: Compute, Host: "h0"}},
		"host pauses":       {0, Evidence{Pauses: []HostPause{{"h1", "tor0", 0.3}, {"h2", "tor0", 0.01}}}, Finding{Cause: SlowHost, Host: "h1"}},
		"all hosts pause":   {0, Evidence{Pauses: []HostPause{{"h0", "tor0", 0.3}, {"h1", "tor0", 0.3}, {"h2", "tor0", 0.3}, {"h3", "tor0", 0.3}}}, Finding{Cause: None}},
		"loss":              {0, Evidence{Losses: []LinkLoss{{"tor0", "leaf1", 90, 9000}}}, Finding{Cause: SlowLink, From: "tor0", To: "leaf1"}},
		"rare loss":         {0, Evidence{Losses: []LinkLoss{{"tor0", "leaf1", 2, 1_000_000}}}, Finding{Cause: None}},
		"pauses and loss": {0, Evidence{
			Pauses: []HostPause{{"h1", "tor0", 0.3}}, Losses: []LinkLoss{{"tor0", "leaf1", 90, 9000}}, HostRate: 10 * model.Gbps,
		}, Finding{Cause: SlowHost, Host: "h1"}},
		"slow exchange": {0, Evidence{HostRate: 100 * model.Gbps}, Finding{Cause: Congestion}},
	} {
		t.Run(name, func(t *testing.T) {
			got := build(tc.late).only(t).Assess(&tc.e)[0]
			if got.Cause != tc.want.Cause || got.Host != tc.want.Host || got.From != tc.want.From || got.To != tc.want.To {
				t.Errorf("found %+v; want %+v", got, tc.want)
			}
		})
	}
}

// TestPatterns names each pattern, whatever the order of hosts.
func TestPatterns(t *testing.T) {
	both := func(list ...[2]string) map[[2]string]uint64 {
		out := map[[2]string]uint64{}
		for _, e := range list {
			out[e], out[[2]string{e[1], e[0]}] = 100, 100
		}
		return out
	}
	for name, tc := range map[string]struct {
		edges map[[2]string]uint64
		want  Pattern
	}{
		"ring":           {map[[2]string]uint64{{"a", "c"}: 9, {"c", "b"}: 9, {"b", "d"}: 9, {"d", "a"}: 9}, Ring},
		"ring both ways": {both([2]string{"a", "c"}, [2]string{"c", "b"}, [2]string{"b", "d"}, [2]string{"d", "a"}), Ring},
		"tree":           {both([2]string{"a", "b"}, [2]string{"a", "c"}, [2]string{"b", "d"}), Tree},
		"all-to-all": {both([2]string{"a", "b"}, [2]string{"a", "c"}, [2]string{"a", "d"}, [2]string{"b", "c"}, [2]string{"b", "d"},
			[2]string{"c", "d"}), AllToAll},
		"mesh":        {both([2]string{"a", "b"}, [2]string{"b", "c"}, [2]string{"c", "d"}, [2]string{"d", "a"}, [2]string{"a", "c"}), Mesh},
		"thin answer": {map[[2]string]uint64{{"a", "b"}: 100, {"b", "c"}: 100, {"c", "d"}: 100, {"d", "a"}: 100, {"b", "a"}: 1}, Ring},
	} {
		if got := patternOf([]string{"a", "b", "c", "d"}, tc.edges); got != tc.want {
			t.Errorf("%s: %s; want %s", name, got, tc.want)
		}
	}
}

// TestOf: a job of a configuration has what its hosts send, steps or not.
func TestOf(t *testing.T) {
	var r recording
	r.send(0, 1, 7, 0, 50, 5_000_000)
	r.send(1, 0, 7, 0, 50, 5_000_000)
	r.send(0, 5, 8, 0, 50, 5_000_000)
	j := NewActivity(r.list).Of("blue", func(h string, _ model.Addr) bool { return h == "h0" || h == "h1" })
	if j.Name != "blue" || j.Inferred || len(j.Flows) != 2 || len(j.Steps) != 0 || !j.Contains([]string{"h1"}) || j.Contains([]string{"h5"}) {
		t.Errorf("job %+v; want blue with two flows and no steps", j)
	}
	if f := j.Assess(&Evidence{Pauses: []HostPause{{"h1", "tor0", 0.5}}}); f[0].Cause != SlowHost {
		t.Errorf("found %+v; want the host that pauses, though the job stands still", f)
	}
	empty := NewActivity(nil)
	if list := empty.Infer(); len(list) != 0 {
		t.Errorf("no records show %d jobs", len(list))
	}
	if f := empty.Of("blue", func(string, model.Addr) bool { return true }).Assess(&Evidence{}); f[0].Cause != None {
		t.Errorf("found %+v without records", f)
	}
}

// TestAcknowledgementsAreNoSteps: a flow whose answers share its key sends when it has data.
func TestAcknowledgementsAreNoSteps(t *testing.T) {
	var r recording
	for i := range 10 {
		r.send(0, 1, 7, 20*i, 3, 3_000_000)
		for k := range 8 {
			r.list = append(r.list, record.FlowSlot{
				Time: epoch.Add(time.Duration(20*i+6+k) * slot), Slot: slot, Flow: key(0, 1, 7), Src: "h0", Dst: "h1", Packets: 700, Bytes: 700 * 70,
			})
		}
	}
	a := NewActivity(r.list)
	if n := len(a.flows[0].points); n != 30 {
		t.Errorf("%d slots with data; want 30", n)
	}
}

func BenchmarkInfer(b *testing.B) {
	var r recording
	hosts := make([]int, 32)
	for i := range hosts {
		hosts[i] = i
	}
	for i := range 50 {
		r.exchange(hosts, true, 7, 20*i, 8, 0, 400_000)
	}
	b.ReportMetric(float64(len(r.list)), "records")
	for b.Loop() {
		if n := len(NewActivity(r.list).Infer()); n != 1 {
			b.Fatalf("%d jobs; want one", n)
		}
	}
}
