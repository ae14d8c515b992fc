// Package simai reads the training workloads of SimAI, as AICB writes them: layers
// with computations and collectives of parallel groups. Topologies are read by
// topo/file, network configurations by scenario/hpcc; running a workload is
// scenario's work.
//
// docs/files.md describes the format and the intended differences.
package simai

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Policies of workloads that can run.
const (
	fwdInBackward = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
	transformer   = "HYBRID_TRANSFORMER"
)

// Workload is a training iteration: all ranks run the same layers.
type Workload struct {
	File   string
	GPUs   int // ranks
	TP, EP int // sizes of tensor and expert parallel groups
	PP     int // stages of pipeline parallelism
	Layers []Layer
	Notes  []string // what the reader of a result must know

	perServer int // ranks of a server
}

// Layer is a line of the file.
type Layer struct {
	Line int
	Name string
	// Forward and InputGradient block: the next step waits for their collectives.
	Forward, InputGradient, WeightGradient Phase
	Update                                 time.Duration // after each collective
}

// Phase is a computation and the collective after it.
type Phase struct {
	Compute time.Duration
	Bytes   int64 // 0: no collective
	Op      collective.Op
	Group   Group
}

// Group is a kind of parallel group.
type Group uint8

// Groups: ranks of one server next to each other, replicas, experts, and replicas of
// experts.
const (
	TP Group = iota
	DP
	EP
	DPEP
	numGroups
)

// maxFile bounds a workload file.
const maxFile = 64 << 20

// LooksLike reports whether a file begins with a policy, as workloads do.
func LooksLike(data []byte) bool {
	words := strings.Fields(string(data[:min(len(data), 256)]))
	return len(words) > 0 && slices.Contains(policies, words[0])
}

// policies are all that SimAI has.
var policies = []string{
	"DATA", transformer, fwdInBackward, "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA",
	"HYBRID_CUSTOMIZED", "MICRO", "DISTRIBUTED_INFERENCE",
}

// Parse parses a workload: a line with the policy and the sizes of groups, a line with
// the number of layers, then a line for each. Every error is a *fileerror.Error.
func Parse(name string, data []byte) (*Workload, error) {
	if len(data) > maxFile {
		return nil, fileerror.Errorf(name, 0, "more than %d bytes, want less", maxFile)
	}
	w := &Workload{File: name, perServer: 1}
	no, count := 0, -1
	header := false
	for text := range strings.Lines(string(data)) {
		no++
		words := strings.Fields(text)
		var err error
		switch {
		case len(words) == 0:
			continue
		case !header:
			header, err = true, w.parseHeader(no, words)
		case count < 0:
			n, bad := strconv.ParseUint(words[0], 10, 64)
			if len(words) != 1 || bad != nil || n < 1 || n > traffic.MaxFlows {
				return nil, fileerror.Errorf(name, no, "number of layers %q, want a number from 1 to %d alone", strings.TrimSpace(text), traffic.MaxFlows)
			}
			count = int(n)
		case len(w.Layers) == count:
			return nil, fileerror.Errorf(name, no, "a line after %d layers, want as many as line 2 says", count)
		default:
			err = w.parseLayer(no, words)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !header:
		return nil, fileerror.Errorf(name, 1, "no policy, want %s", fwdInBackward)
	case count < 0:
		return nil, fileerror.Errorf(name, no, "file ends here, want the number of layers")
	case len(w.Layers) < count:
		return nil, fileerror.Errorf(name, no, "file ends after %d layers, want %d", len(w.Layers), count)
	}
	return w, nil
}

// parseHeader reads "POLICY key: value …".
func (w *Workload) parseHeader(no int, words []string) error {
	if policy := words[0]; policy != fwdInBackward && policy != transformer {
		return fileerror.Errorf(w.File, no, "policy %q, want %s or %s", policy, fwdInBackward, transformer)
	}
	values := map[string]int{}
	for i := 1; i < len(words); i += 2 {
		key := strings.TrimSuffix(words[i], ":")
		if !slices.Contains([]string{"model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "checkpoints", "checkpoint_initiates", "pp_comm"}, key) {
			return fileerror.Errorf(w.File, no, "key %q, want model_parallel_NPU_group, ep, pp, vpp, ga, all_gpus, checkpoints, checkpoint_initiates or pp_comm", words[i])
		}
		if _, twice := values[key]; twice {
			return fileerror.Errorf(w.File, no, "%s is there twice, want it once", key)
		}
		if i+1 == len(words) {
			return fileerror.Errorf(w.File, no, "%s without a value, want a number", key)
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(words[i+1], ".0"), 10, 64)
		if err != nil || n > uint64(traffic.MaxBytes) {
			return fileerror.Errorf(w.File, no, "%s %q, want a number from 0 to %d", key, words[i+1], int64(traffic.MaxBytes))
		}
		values[key] = int(n)
	}
	size := func(key string, least int) (int, error) {
		n, given := values[key]
		if !given && least == 0 {
			return 1, nil
		}
		if n < 1 || n > traffic.MaxFlows {
			return 0, fileerror.Errorf(w.File, no, "%s %d, want from 1 to %d", key, n, traffic.MaxFlows)
		}
		return n, nil
	}
	var err error
	for _, s := range []struct {
		to    *int
		key   string
		least int
	}{{&w.GPUs, "all_gpus", 1}, {&w.TP, "model_parallel_NPU_group", 1}, {&w.EP, "ep", 0}, {&w.PP, "pp", 0}} {
		if *s.to, err = size(s.key, s.least); err != nil {
			return err
		}
	}
	if w.GPUs%w.TP != 0 || w.GPUs/w.TP%w.PP != 0 || w.GPUs/w.TP/w.PP%w.EP != 0 {
		return fileerror.Errorf(w.File, no, "all_gpus %d, want a multiple of model_parallel_NPU_group × pp × ep, %d × %d × %d", w.GPUs, w.TP, w.PP, w.EP)
	}
	if values["checkpoints"]+values["checkpoint_initiates"] > 0 {
		return fileerror.Errorf(w.File, no, "checkpoints, want 0: layers are not computed again in the backward pass")
	}
	if w.PP > 1 || values["pp_comm"] > 0 {
		w.Notes = append(w.Notes, "pp and pp_comm: transfers between pipeline stages are not simulated, nor are they by SimAI, which adds a formula to its report")
	}
	return nil
}

// parseLayer reads "name dependency", three times "time collective bytes", and the
// time of an update.
func (w *Workload) parseLayer(no int, words []string) error {
	if len(words) != 12 {
		return fileerror.Errorf(w.File, no, "%d words, want 12: name, dependency, three times computation, collective and bytes, and the update", len(words))
	}
	l := Layer{Line: no, Name: words[0]}
	if _, err := strconv.ParseInt(words[1], 10, 64); err != nil {
		return fileerror.Errorf(w.File, no, "dependency %q, want a number such as -1", words[1])
	}
	for i, p := range []struct {
		to       *Phase
		name     string
		standard Group
	}{
		{&l.Forward, "forward", TP}, {&l.InputGradient, "input gradient", TP}, {&l.WeightGradient, "weight gradient", DP},
	} {
		if err := w.parsePhase(no, p.name, words[2+3*i:5+3*i], p.standard, p.to); err != nil {
			return err
		}
	}
	update, err := w.nanoseconds(no, "update", words[11])
	l.Update = update
	w.Layers = append(w.Layers, l)
	return err
}

func (w *Workload) nanoseconds(no int, what, text string) (time.Duration, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > uint64(traffic.MaxTime) {
		return 0, fileerror.Errorf(w.File, no, "%s %q, want nanoseconds from 0 to %d", what, text, int64(traffic.MaxTime))
	}
	return time.Duration(n), nil
}

// collectives are the names of collectives, without the suffix of a group.
var collectives = map[string]collective.Op{
	"ALLREDUCE": collective.AllReduce, "ALLGATHER": collective.AllGather, "REDUCESCATTER": collective.ReduceScatter, "ALLTOALL": collective.AllToAll,
}

func (w *Workload) parsePhase(no int, what string, words []string, standard Group, to *Phase) (err error) {
	if to.Compute, err = w.nanoseconds(no, what+" computation", words[0]); err != nil {
		return err
	}
	bytes, err := strconv.ParseUint(words[2], 10, 64)
	if err != nil || bytes > uint64(traffic.MaxBytes) {
		return fileerror.Errorf(w.File, no, "%s bytes %q, want a number from 0 to %d", what, words[2], int64(traffic.MaxBytes))
	}
	if words[1] == "NONE" {
		return nil
	}
	name, group := words[1], standard
	for _, suffix := range []struct {
		text  string
		group Group
	}{{"_DP_EP", DPEP}, {"_EP", EP}} {
		if rest, has := strings.CutSuffix(name, suffix.text); has {
			name, group = rest, suffix.group
			break
		}
	}
	op, known := collectives[name]
	if !known {
		return fileerror.Errorf(w.File, no, "%s collective %q, want NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP, _DP_EP or no suffix", what, words[1])
	}
	to.Op, to.Group, to.Bytes = op, group, int64(bytes)
	return nil
}
