package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"pgregory.net/rapid"
)

// everyKind returns one generator of each kind, for hosts from 0 to 15.
func everyKind() []Generator {
	poisson := DefaultPoisson()
	poisson.Sizes, poisson.Duration = mustSizes("hadoop"), time.Millisecond
	incast := DefaultIncast()
	incast.Rounds, incast.Jitter = 3, 10*time.Microsecond
	query := DefaultQuery()
	query.Think, query.Duration = time.Microsecond, time.Millisecond
	persistent := DefaultPersistent()
	persistent.Pairs = []Pair{{0, 1}, {2, 3}}
	shrew := DefaultShrew()
	shrew.Senders, shrew.Receiver = []model.NodeID{4, 5}, 6
	job := DefaultJob()
	job.Iterations, job.Start = 2, 5000
	return []Generator{
		poisson, DefaultPermutation(), incast, query, persistent, shrew,
		RingAllReduce{job},
		AllToAll{Job: job, Window: 3},
		List{{Src: 1, Dst: 2, Bytes: 5, Start: 9}},
	}
}

func generate(t testing.TB, seed uint64, gs ...Generator) []Flow {
	t.Helper()
	flows, err := Generate(seed, hostsOf(16), gs...)
	if err != nil {
		t.Fatal(err)
	}
	return flows
}

func TestASeedReplaysExactly(t *testing.T) {
	for _, g := range everyKind() {
		if d := cmp.Diff(generate(t, 1, g), generate(t, 1, g)); d != "" {
			t.Errorf("%s differs from itself:\n%s", g.kind(), d)
		}
	}
	all := everyKind()
	if d := cmp.Diff(generate(t, 1, all...), generate(t, 1, all...)); d != "" {
		t.Errorf("all together differ from themselves:\n%s", d)
	}
	for _, i := range []int{0, 1, 2, 3} { // those that draw
		if cmp.Equal(generate(t, 1, all[i]), generate(t, 2, all[i])) {
			t.Errorf("%s is the same with seeds 1 and 2; want another", all[i].kind())
		}
		// The same generator at another position draws other numbers.
		if both := generate(t, 1, all[i], all[i]); sameHalves(both) {
			t.Errorf("two %s in one list are the same; want them to differ", all[i].kind())
		}
	}
}

// sameHalves reports whether a list is some flows, each twice.
func sameHalves(flows []Flow) bool {
	type what struct {
		src, dst model.NodeID
		start    model.Time
		bytes    model.Bytes
	}
	count := map[what]int{}
	for _, f := range flows {
		count[what{f.Src, f.Dst, f.Start, f.Bytes}]++
	}
	for _, n := range count {
		if n%2 != 0 {
			return false
		}
	}
	return true
}

// TestSourcesAreIndependent: neighbouring generators are seeded with
// neighbouring numbers, and must not draw the same.
func TestSourcesAreIndependent(t *testing.T) {
	const n = 10_000
	for seed := range uint64(20) {
		a, b := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
		var ab, aa, bb float64
		for range n {
			x, y := a.Float64()-0.5, b.Float64()-0.5
			ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		}
		if r := ab / math.Sqrt(aa*bb); math.Abs(r) > 4.5/math.Sqrt(n) {
			t.Errorf("seed %d: draws of generators 0 and 1 correlate by %.4f; want below %.4f", seed, r, 4.5/math.Sqrt(n))
		}
	}
}

// TestOneMoreChangesNothing takes the flows of the last generator out again
// and wants the list without it.
func TestOneMoreChangesNothing(t *testing.T) {
	all := everyKind()
	for n := 1; n < len(all); n++ {
		without := generate(t, 1, all[:n]...)
		with := generate(t, 1, append(slices.Clone(all[:n]), List{{Src: 9, Dst: 8, Bytes: 1, Start: 100_000, Priority: 7}})...)
		at := slices.IndexFunc(with, func(f Flow) bool { return f.Priority == 7 })
		with = slices.Delete(with, at, at+1)
		for i := range with {
			for k, a := range with[i].After {
				if a > at {
					with[i].After[k]--
				}
			}
		}
		if d := cmp.Diff(without, with); d != "" {
			t.Errorf("one more after %s changes the others (-without +with):\n%s", all[n-1].kind(), d)
		}
	}
}

// TestMergeRemaps follows every dependency by the names of the flows, which
// are their sizes here.
func TestMergeRemaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var gs []Generator
		wants := map[model.Bytes][]model.Bytes{}
		group := map[model.Bytes]int{}
		groups, total := 0, 0
		for range rapid.IntRange(0, 4).Draw(t, "lists") {
			n := rapid.IntRange(0, 12).Draw(t, "flows")
			list, most := make(List, n), 0
			for i := range list {
				f := Flow{Src: 1, Dst: 2, Bytes: model.Bytes(total + i + 1), Start: model.Time(rapid.IntRange(0, 5).Draw(t, "start"))}
				f.Group = rapid.IntRange(0, 3).Draw(t, "group")
				if f.Group > 0 {
					group[f.Bytes] = groups + f.Group
					most = max(most, f.Group)
				}
				for a := range i { // to earlier ones only: no cycle
					if rapid.Bool().Draw(t, "after") {
						f.After = append(f.After, a)
						wants[f.Bytes] = append(wants[f.Bytes], model.Bytes(total+a+1))
					}
				}
				list[i] = f
			}
			groups, total = groups+most, total+n
			gs = append(gs, list)
		}
		flows, err := Generate(1, hostsOf(3), gs...)
		if err != nil || len(flows) != total {
			t.Fatalf("Generate = %d flows, %v; want %d", len(flows), err, total)
		}
		for i, f := range flows {
			if i > 0 && (f.Start < flows[i-1].Start || f.Start == flows[i-1].Start && f.Bytes < flows[i-1].Bytes) {
				t.Fatalf("flow %d (%+v) comes after %+v; want them to ascend by start, else in the order given", i, f, flows[i-1])
			}
			var got []model.Bytes
			for _, a := range f.After {
				got = append(got, flows[a].Bytes)
			}
			if !slices.Equal(got, wants[f.Bytes]) || f.Group != group[f.Bytes] {
				t.Fatalf("flow %d is after %v in group %d; want after %v in group %d", f.Bytes, got, f.Group, wants[f.Bytes], group[f.Bytes])
			}
		}
	})
}

func TestCheckErrors(t *testing.T) {
	ok := Flow{Src: 1, Dst: 2, Bytes: 5}
	with := func(change func(*Flow)) []Flow {
		f := ok
		change(&f)
		return []Flow{ok, f}
	}
	for want, flows := range map[string][]Flow{
		"flow 1: source 9 is not a host":                  with(func(f *Flow) { f.Src = 9 }),
		"flow 1: destination 3 is not a host":             with(func(f *Flow) { f.Dst = 3 }),
		"flow 1: source and destination 2, want two":      with(func(f *Flow) { f.Src = 2 }),
		"flow 1: source 9 is not a host of":               with(func(f *Flow) { f.Src, f.To = 9, model.Addr4(1) }),
		"flow 1: from fd00::1 to 0.0.0.1, want two":       with(func(f *Flow) { f.From, f.To = model.Addr{Hi: 0xfd << 56, Lo: 1}, model.Addr4(1) }),
		"flow 1: priority 8, want 0 to 7":                 with(func(f *Flow) { f.Priority = 8 }),
		"flow 1: transport 3, want one of rdma, tcp, udp": with(func(f *Flow) { f.Transport = 3 }),
		"flow 1: rate -1b/s, want 0 to":                   with(func(f *Flow) { f.Rate = -1 }),
		"flow 1: transport udp without congestion":        with(func(f *Flow) { f.NoCC, f.Transport = true, UDP }),
		"flow 1: start -1ns, want from":                   with(func(f *Flow) { f.Start = -1 }),
		"flow 1: delay -1ns, want from":                   with(func(f *Flow) { f.Delay = -1 }),
		"flow 1: group -1, want from 0":                   with(func(f *Flow) { f.Group = -1 }),
		"flow 1: size 0B, want from 1B":                   with(func(f *Flow) { f.Bytes = 0 }),
		"flow 1: size 5B and stop +9ns, want one":         with(func(f *Flow) { f.Stop = 9 }),
		"flow 1: stop +9ns, want after the start at +9ns": with(func(f *Flow) { f.Start, f.Stop, f.Bytes = 9, 9, 0 }),
		"flow 1: after flow 2, want another from 0 to 1":  with(func(f *Flow) { f.After = []int{2} }),
		"flow 1: after flow 1, want another":              with(func(f *Flow) { f.After = []int{0, 1} }),
		"flow 1: after flow -1, want another":             with(func(f *Flow) { f.After = []int{-1} }),
		"flow 1 is in or after a cycle":                   {ok, {Src: 1, Dst: 2, Bytes: 5, After: []int{0, 2}}, {Src: 1, Dst: 2, Bytes: 5, After: []int{1}}},
		"flow 9223: the flows up to here carry more than": slices.Repeat([]Flow{{Src: 1, Dst: 2, Bytes: MaxBytes}}, 10_000),
	} {
		if err := Check(flows, hostsOf(3)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Check(%.200v) = %v; want %s…", flows, err, want)
		}
		if _, err := Generate(1, hostsOf(3), List(flows)); err == nil || !strings.HasPrefix(err.Error(), "generator 0 (list): "+want) {
			t.Errorf("Generate(%.200v) = %v; want generator 0 (list): %s…", flows, err, want)
		}
	}
	toAddr := Flow{Src: 1, Dst: 77, From: model.Addr4(5), To: model.Addr4(6), Bytes: 5} // Dst is not read
	if err := Check([]Flow{ok, {Src: 2, Dst: 1, Stop: 1, Rate: 7, After: []int{0, 2}}, toAddr}, hostsOf(3)); err != nil {
		t.Errorf("Check(good flows) = %v; want no error", err)
	}
}

func TestGenerateRejectsHosts(t *testing.T) {
	for want, hosts := range map[string][]Host{
		"host 4 is listed twice": {{ID: 4}, {ID: 2}, {ID: 4}},
		"host 2 has rate -1b/s,": {{ID: 4}, {ID: 2, Rate: -1}},
	} {
		if _, err := Generate(1, hosts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Generate(%v) = %v; want %s…", hosts, err, want)
		}
	}
}

func TestHostsOf(t *testing.T) {
	b := topo.NewBuilder("")
	s := b.AddNode(topo.NodeSpec{Name: "s", Role: topo.Switch, Pod: topo.NoPod})
	mux := b.AddNode(topo.NodeSpec{Name: "mux", Role: topo.Mux, Pod: topo.NoPod})
	twice := b.AddNode(topo.NodeSpec{Name: "twice", Role: topo.Host, Pod: topo.NoPod})
	once := b.AddNode(topo.NodeSpec{Name: "once", Role: topo.Host, Pod: topo.NoPod})
	for _, id := range []model.NodeID{mux, twice, twice, once} {
		b.Connect(s, id, topo.LinkSpec{Rate: 25 * model.Gbps})
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	want := []Host{{twice, 50 * model.Gbps}, {once, 25 * model.Gbps}}
	if d := cmp.Diff(want, HostsOf(f)); d != "" {
		t.Errorf("HostsOf differs (-want +got):\n%s", d)
	}
}

func TestTransportNames(t *testing.T) {
	for _, name := range []string{"rdma", "TCP", "udp"} {
		var tr Transport
		if err := tr.UnmarshalText([]byte(name)); err != nil || !strings.EqualFold(tr.String(), name) {
			t.Errorf("UnmarshalText(%q) = %v, %v; want the same", name, tr, err)
		}
	}
	if _, err := ParseTransport("quic"); err == nil {
		t.Error("ParseTransport(quic) = nil; want an error")
	}
	if text, err := TCP.MarshalText(); err != nil || string(text) != "tcp" {
		t.Errorf("TCP.MarshalText() = %q, %v; want tcp", text, err)
	}
}
