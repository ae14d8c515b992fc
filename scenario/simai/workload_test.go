package simai

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/traffic"
)

const small = `HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0 pp_comm 0
2
first	-1	10	ALLGATHER	400	20	REDUCESCATTER	400	5	ALLREDUCE	800	7

second -1 30 NONE 0 40 ALLREDUCE_EP 100 0 ALLREDUCE 80 7
`

func hosts(n int) []model.NodeID {
	out := make([]model.NodeID, n)
	for i := range out {
		out[i] = model.NodeID(i)
	}
	return out
}

func TestParse(t *testing.T) {
	w, err := Parse("in", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if w.GPUs != 4 || w.TP != 2 || w.EP != 1 || w.PP != 1 || len(w.Layers) != 2 || len(w.Notes) != 0 {
		t.Fatalf("%+v; want 4 ranks, tensor parallel groups of 2, and 2 layers", w)
	}
	want := Layer{
		Line: 3, Name: "first", Update: 7,
		Forward:        Phase{10, 400, collective.AllGather, TP},
		InputGradient:  Phase{20, 400, collective.ReduceScatter, TP},
		WeightGradient: Phase{5, 800, collective.AllReduce, DP},
	}
	if w.Layers[0] != want {
		t.Errorf("layer %+v; want %+v", w.Layers[0], want)
	}
	if l := w.Layers[1]; l.Line != 5 || l.Forward.Bytes != 0 || l.InputGradient.Group != EP {
		t.Errorf("layer %+v; want line 5, no forward collective, and experts", l)
	}
}

// TestGroupsPartitionTheRanks: communicators of one kind have every rank once, and
// are those that SimAI forms.
func TestGroupsPartitionTheRanks(t *testing.T) {
	w := Workload{GPUs: 16, TP: 2, EP: 4, PP: 1}
	for g, want := range map[Group][]int{TP: {0, 1}, DP: {0, 2, 4, 6, 8, 10, 12, 14}, EP: {0, 2, 4, 6}, DPEP: {0, 8}} {
		if got := w.groups(g)[0]; !slices.Equal(got, want) {
			t.Errorf("first group of kind %d is %v; want %v", g, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int { return rapid.IntRange(1, 4).Draw(t, name) }
		w := Workload{TP: size("tp"), EP: size("ep"), PP: size("pp")}
		w.GPUs = w.TP * w.EP * w.PP * size("replicas")
		for g := range numGroups {
			seen := make([]bool, w.GPUs)
			for _, ranks := range w.groups(g) {
				for _, r := range ranks {
					if seen[r] {
						t.Fatalf("%+v: rank %d is in two groups of kind %d", w, r, g)
					}
					seen[r] = true
				}
			}
			if slices.Contains(seen, false) {
				t.Fatalf("%+v: groups of kind %d leave ranks out: %v", w, g, seen)
			}
		}
	})
}

// TestFlows: bytes are those of the collectives' formulas, and without transfer times
// the iteration takes what every rank computes, and the updates that block.
func TestFlows(t *testing.T) {
	w, err := Parse("in", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	w.SetServers(2)
	flows, err := w.Flows(hosts(4))
	if err != nil {
		t.Fatal(err)
	}
	if err := traffic.Check(flows, []traffic.Host{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}); err != nil {
		t.Fatal(err)
	}
	var bytes model.Bytes
	computed := map[model.NodeID]time.Duration{}
	end := make([]time.Duration, len(flows))
	for i, f := range flows { // each is listed after those that it waits for
		for _, a := range f.After {
			if a >= i {
				t.Fatalf("flow %d waits for %d, a later one", i, a)
			}
			end[i] = max(end[i], end[a])
		}
		end[i] += f.Compute
		if bytes += f.Bytes; f.IsComputation() && f.Core == computeCore {
			computed[f.Src] += f.Compute
		}
	}
	// Two groups of two ranks each: 400 twice in the first layer; replicas 800 and 80.
	if want := model.Bytes(2*400 + 2*400 + 2*2*800 + 2*2*80); bytes != want {
		t.Errorf("%d bytes; want %d", bytes, want)
	}
	for host, took := range computed {
		if took != 105 {
			t.Errorf("host %d computes for %v; want 105 ns", host, took)
		}
	}
	if longest, want := slices.Max(end), time.Duration(105+2*7+7); longest != want {
		t.Errorf("ends at %v; want %v: computing, two updates that block, and the last one", longest, want)
	}
	if _, err := w.Flows(hosts(3)); err == nil || err.Error() != "in:1: all_gpus 4 for a topology of 3 hosts, want at most that" {
		t.Errorf("Flows on 3 hosts = %v; want an error", err)
	}
}

func TestParseErrors(t *testing.T) {
	header := strings.SplitN(small, "\n", 2)[0]
	layer := "x -1 10 NONE 0 20 NONE 0 5 NONE 0 7"
	for text, want := range map[string]string{
		"":                                      "in:1: no policy, want HYBRID_TRANSFORMER_FWD_IN_BCKWD",
		"MICRO\n1\n" + layer:                    `in:1: policy "MICRO", want HYBRID_TRANSFORMER_FWD_IN_BCKWD or HYBRID_TRANSFORMER`,
		header:                                  "in:1: file ends here, want the number of layers",
		header + "\nx":                          `in:2: number of layers "x", want a number from 1 to 16777216 alone`,
		header + "\n2\n" + layer:                "in:3: file ends after 1 layers, want 2",
		header + "\n1\n" + layer + "\n" + layer: "in:4: a line after 1 layers, want as many as line 2 says",
		header + "\n1\nx -1 10":                 "in:3: 3 words, want 12: name, dependency, three times computation, collective and bytes, and the update",
		header + "\n1\nx z" + layer[4:]:         `in:3: dependency "z", want a number such as -1`,
		header + "\n1\nx -1 1.5 NONE 0 20 NONE 0 5 NONE 0 7":           `in:3: forward computation "1.5", want nanoseconds from 0 to 1000000000000000`,
		header + "\n1\nx -1 1 NONE 0 20 NONE -1 5 NONE 0 7":            `in:3: input gradient bytes "-1", want a number from 0 to 1000000000000000`,
		header + "\n1\nx -1 1 NONE 0 20 NONE 0 5 ALLREDUCE_DP 0 7":     `in:3: weight gradient collective "ALLREDUCE_DP", want NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP, _DP_EP or no suffix`,
		header + "\n1\nx -1 1 NONE 0 20 NONE 0 5 NONE 0 z":             `in:3: update "z", want nanoseconds from 0 to 1000000000000000`,
		strings.Replace(header, "all_gpus: 4", "all_gpus: 5", 1):       "in:1: all_gpus 5, want a multiple of model_parallel_NPU_group × pp × ep, 2 × 1 × 1",
		strings.Replace(header, "all_gpus: 4", "", 1):                  "in:1: all_gpus 0, want from 1 to 16777216",
		strings.Replace(header, "checkpoints: 0", "checkpoints: 3", 1): "in:1: checkpoints, want 0: layers are not computed again in the backward pass",
		strings.Replace(header, "ga: 1", "gas: 1", 1):                  `in:1: key "gas:", want model_parallel_NPU_group, ep, pp, vpp, ga, all_gpus, checkpoints, checkpoint_initiates or pp_comm`,
		strings.Replace(header, "ga: 1", "ep: 1", 1):                   "in:1: ep is there twice, want it once",
		strings.Replace(header, "ga: 1", "ga: x", 1):                   `in:1: ga "x", want a number from 0 to 1000000000000000`,
		strings.Replace(header, "pp_comm 0", "pp_comm", 1):             "in:1: pp_comm without a value, want a number",
	} {
		if _, err := Parse("in", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("Parse(%q) = %v; want %s", text, err, want)
		}
	}
}

func TestPipelineParallelismIsNoted(t *testing.T) {
	text := strings.NewReplacer("pp: 1", "pp: 2", "pp_comm 0", "pp_comm: 1024.0").Replace(small)
	w, err := Parse("in", []byte(text))
	if err != nil || len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "pipeline stages are not simulated") {
		t.Errorf("Parse = %+v, %v; want a note", w, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, name := range []string{"dense.txt", "experts.txt"} {
		in, err := os.ReadFile("../../examples/simai/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		w, err := Parse("in", in)
		if err != nil {
			var e *fileerror.Error
			if !errors.As(err, &e) || e.Line == 0 && len(in) <= maxFile {
				t.Fatalf("Parse(%q) = %T %v; want an error with a line", in, err, err)
			}
			return
		}
		if len(in) < 256 && !LooksLike(in) {
			t.Fatalf("%q is a workload and does not look like one", in)
		}
		if w.GPUs > 16 || len(w.Layers) > 5 {
			return
		}
		w.SetServers(w.TP)
		flows, err := w.Flows(hosts(w.GPUs))
		if err != nil {
			t.Fatalf("Flows of %q = %v", in, err)
		}
		all := make([]traffic.Host, w.GPUs)
		for i := range all {
			all[i].ID = model.NodeID(i)
		}
		if err := traffic.Check(flows, all); err != nil && !strings.Contains(err.Error(), "carry more than") {
			t.Fatalf("Check(Flows(%q)) = %v", in, err)
		}
	})
}
