package nccl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// entry is a collective in the flight recorder, version 2.
type entry struct {
	Group       []string  `json:"process_group"` // name, description
	Seq         uint64    `json:"collective_seq_id"`
	P2P         bool      `json:"is_p2p"`
	Name        string    `json:"profiling_name"` // "nccl:all_reduce"
	CreatedNs   int64     `json:"time_created_ns"`
	DurationMs  float64   `json:"duration_ms"` // with TORCH_NCCL_ENABLE_TIMING=1
	InputSizes  [][]int64 `json:"input_sizes"`
	InputDtypes []string  `json:"input_dtypes"`
	State       string    `json:"state"` // scheduled, started, completed
}

// groupConfig is a process group; its ranks are text: "[0, 1, 2]".
type groupConfig struct {
	Ranks string `json:"ranks"`
}

// maxGroups bounds the process groups of one rank.
const maxGroups = 1 << 14

// readFlightRecorder reads an object whose first key was read.
func readFlightRecorder(d *decoder, key string, rank, limit int) (*Dump, error) {
	out := &Dump{}
	groups := map[string]groupConfig{}
	version := ""
	if err := d.fields(key, func(key string) error {
		switch key {
		case "version":
			return d.value(&version)
		case "pg_config":
			return d.groups(groups)
		case "entries":
			return d.list("entries", func() error { return d.entry(out, rank, limit) })
		}
		return d.skip()
	}); err != nil {
		return nil, err
	}
	switch {
	case version == "":
		return nil, errFormat
	case !strings.HasPrefix(version, "2."):
		return nil, fmt.Errorf("flight recorder version %.20q, want 2", version)
	case rank < 0 && len(out.Records) > 0:
		return nil, errors.New("a flight recorder dump does not have its rank: want it at the end of the file's name, as in nccl_trace_rank_7.json")
	}
	out.finish(groups)
	return out, nil
}

// finish adds what process groups are, and drops further parts of coalesced collectives.
func (out *Dump) finish(groups map[string]groupConfig) {
	type part struct {
		group, op string
		seq       uint64
	}
	seen := map[part]bool{}
	kept := out.Records[:0]
	for _, r := range out.Records {
		p := part{r.Group.ID, r.Op, r.Seq}
		if seen[p] {
			out.Repeated++
			continue
		}
		seen[p] = true
		if r.Group.Ranks = groups[r.Group.ID].Ranks; r.Group.Ranks != "" {
			r.Group.Size = strings.Count(r.Group.Ranks, ",") + 1
		}
		kept = append(kept, r)
	}
	out.Records = kept
}

// groups reads pg_config.
func (d *decoder) groups(into map[string]groupConfig) error {
	if t, err := d.token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, errors.New("pg_config is no object"))
	}
	for {
		t, err := d.token()
		if err != nil || t == json.Delim('}') {
			return err
		}
		name, _ := t.(string)
		var c groupConfig
		if err := d.value(&c); err != nil {
			return fmt.Errorf("pg_config: %w", err)
		}
		if len(into) >= maxGroups {
			return fmt.Errorf("pg_config: more than %d process groups", maxGroups)
		}
		into[name] = c
	}
}

// entry reads one entry.
func (d *decoder) entry(out *Dump, rank, limit int) error {
	var e entry
	if err := d.value(&e); err != nil {
		return err
	}
	if e.P2P {
		out.Skipped++
		return nil
	}
	if len(out.Records) >= limit {
		out.Full = true
		return nil
	}
	r, err := e.record(rank)
	out.Records = append(out.Records, r)
	return err
}

func (e *entry) record(rank int) (Record, error) {
	if len(e.Group) != 2 {
		return Record{}, fmt.Errorf("process_group has %d values, want name and description", len(e.Group))
	}
	if e.DurationMs < 0 || e.DurationMs > 1e9 {
		return Record{}, fmt.Errorf("duration_ms %g, want 0 to 1e9", e.DurationMs)
	}
	_, op, found := strings.Cut(e.Name, ":")
	if !found {
		op = e.Name
	}
	r := Record{
		Group: Group{ID: e.Group[0], Title: e.Group[1]}, Rank: rank, Op: op, Seq: e.Seq, Bytes: e.bytes(),
		Time: time.Unix(0, e.CreatedNs).UTC(), Duration: time.Duration(e.DurationMs * 1e6), Waiting: e.State == "scheduled" || e.State == "started",
	}
	return r, errors.Join(checkName("process_group", e.Group[0]), checkName("process_group", e.Group[1]), checkName("profiling_name", e.Name))
}

// itemSize is the bytes of a tensor's item by its type, as c10::toString names it.
var itemSize = map[string]uint64{
	"Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Int": 4, "Long": 8, "UInt16": 2, "UInt32": 4, "UInt64": 8,
	"Half": 2, "BFloat16": 2, "Float": 4, "Double": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16,
	"Float8_e5m2": 1, "Float8_e4m3fn": 1, "Float8_e5m2fnuz": 1, "Float8_e4m3fnuz": 1,
}

// bytes is the size of the inputs; 0 if a type or a dimension is unknown.
func (e *entry) bytes() (sum uint64) {
	for i, dims := range e.InputSizes {
		if i >= len(e.InputDtypes) {
			return 0
		}
		n := itemSize[e.InputDtypes[i]]
		for _, dim := range dims {
			high, low := bits.Mul64(n, uint64(max(dim, 0)))
			if high > 0 || low > 1<<50 {
				return 0
			}
			n = low
		}
		if n == 0 {
			return 0
		}
		sum += n
	}
	return sum
}
