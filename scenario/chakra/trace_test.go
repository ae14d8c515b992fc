package chakra

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

var update = flag.Bool("update", false, "write the sample traces")

// encode writes a trace file as the schema says: metadata, then nodes.
func encode(nodes ...Node) []byte {
	meta := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "0.0.4")
	out := protowire.AppendBytes(nil, meta)
	number := func(b []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
	}
	for i, n := range nodes {
		b := number(nil, fieldID, n.ID)
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), fmt.Sprintf("node %d", n.ID))
		b = number(b, fieldType, uint64(n.Type))
		if i%2 == 0 { // packed, as proto3 does, or not: both must be read
			var packed []byte
			for _, id := range n.After {
				packed = protowire.AppendVarint(packed, id)
			}
			b = protowire.AppendBytes(protowire.AppendTag(b, fieldDataDeps, protowire.BytesType), packed)
		} else {
			for _, id := range n.After {
				b = number(b, fieldCtrlDeps, id)
			}
		}
		b = number(b, fieldDuration, uint64(n.Duration/time.Microsecond))
		for _, a := range []struct {
			name  string
			value uint64
		}{
			{"comm_size", n.Bytes},
			{"comm_type", uint64(n.Collective)},
			{"comm_src", n.Src},
			{"comm_dst", n.Dst},
			{"comm_tag", n.Tag},
		} {
			attr := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), a.name)
			attr = number(attr, 9, a.value)
			b = protowire.AppendBytes(protowire.AppendTag(b, fieldAttr, protowire.BytesType), attr)
		}
		out = protowire.AppendBytes(out, b)
	}
	return out
}

// sample is a step of training on four ranks: 100 µs of computing, an all-reduce
// of 4 MB, 50 µs, and a chain of messages of 500 kB from rank to rank.
func sample(rank int) []Node {
	list := []Node{
		{ID: 10, Type: Comp, Duration: 100 * time.Microsecond},
		{ID: 11, Type: Coll, Collective: AllReduce, Bytes: 4_000_000, After: []uint64{10}},
		{ID: 12, Type: Comp, Duration: 50 * time.Microsecond, After: []uint64{11}},
	}
	last := uint64(12)
	if rank > 0 {
		list = append(list, Node{ID: 13, Type: Recv, Src: uint64(rank - 1), Dst: uint64(rank), Bytes: 500_000, Tag: 3, After: []uint64{12}})
		last = 13
	}
	if rank < 3 {
		list = append(list, Node{ID: 14, Type: Send, Src: uint64(rank), Dst: uint64(rank + 1), Bytes: 500_000, Tag: 3, After: []uint64{last}})
	}
	return list
}

// TestSamples: the files under examples are these traces.
func TestSamples(t *testing.T) {
	for rank := range 4 {
		name := fmt.Sprintf("../../examples/chakra/train.%d.et", rank)
		want := encode(sample(rank)...)
		if *update {
			if err := os.WriteFile(name, want, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v; want %d (-update writes them)", name, len(got), err, len(want))
		}
	}
}

func flowsOf(t *testing.T, ranks ...[]Node) ([]traffic.Flow, error) {
	t.Helper()
	var trace Trace
	hosts := make([]model.NodeID, len(ranks))
	for i, nodes := range ranks {
		hosts[i] = model.NodeID(i)
		if err := trace.Add(fmt.Sprint("r", i), encode(nodes...)); err != nil {
			return nil, err
		}
	}
	return trace.Flows(hosts)
}

// TestCollectivesSendWhatTheyMust: bytes that each rank sends.
func TestCollectivesSendWhatTheyMust(t *testing.T) {
	for kind, want := range map[CollectiveType]model.Bytes{AllReduce: 6000, AllGather: 3000, ReduceScatter: 3000, AllToAll: 3000} {
		one := []Node{{ID: 1, Type: Coll, Collective: kind, Bytes: 4000}}
		flows, err := flowsOf(t, one, one, one, one)
		if err != nil {
			t.Fatal(err)
		}
		sent := make(map[model.NodeID]model.Bytes)
		for _, f := range flows {
			sent[f.Src] += f.Bytes
		}
		for rank := range 4 {
			if sent[model.NodeID(rank)] != want {
				t.Errorf("collective %d: rank %d sends %v; want %v", kind, rank, sent[model.NodeID(rank)], want)
			}
		}
		if err := traffic.Check(flows, []traffic.Host{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}); err != nil {
			t.Errorf("collective %d: %v", kind, err)
		}
	}
}

func TestErrors(t *testing.T) {
	coll := func(k CollectiveType, n uint64) []Node { return []Node{{ID: 1, Type: Coll, Collective: k, Bytes: n}} }
	for want, ranks := range map[string][][]Node{
		"r0:2: node id 1 again, want different ones":                                     {{{ID: 1}, {ID: 1}}},
		"r0:1: file has no node, want metadata and at least one":                         {{}},
		"r0:1: node id 1 depends on 7, want another node of the file":                    {{{ID: 1, After: []uint64{7}}}},
		"r0:1: send of 5 bytes to rank 9, want another from 0 to 0":                      {{{ID: 1, Type: Send, Dst: 9, Bytes: 5}}},
		"r1:1: receive from rank 0 with tag 4 that no send matches":                      {{{ID: 1}}, {{ID: 1, Type: Recv, Tag: 4}}},
		"r0:1: send to rank 1 with tag 0: more sends than receives":                      {{{ID: 1, Type: Send, Dst: 1}}, {{ID: 1}}},
		"r1:1: 0 collectives, rank 0 has 1, want as many":                                {coll(0, 8), {{ID: 1}}},
		"r1:1: collective 1 of type 0 and 9 bytes, rank 0 has type 0 and 8 bytes, want ": {coll(0, 8), coll(0, 9)},
		"r0:1: comm_type 5, want 0 (all-reduce)":                                         {coll(5, 8), coll(5, 8)},
	} {
		if _, err := flowsOf(t, ranks...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v; want %s", ranks, err, want)
		}
	}
	good := encode(sample(1)...)
	var trace Trace
	if err := trace.Add("x", good[:len(good)-1]); err == nil ||
		err.Error() != "x:5: message 6 does not end in the file, want its length and as many bytes" {
		t.Errorf("a file cut off: %v", err)
	}
}

func FuzzAdd(f *testing.F) {
	for rank := range 4 {
		f.Add(encode(sample(rank)...))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var trace Trace
		err := trace.Add("in", in)
		if err == nil {
			_, err = trace.Flows([]model.NodeID{0})
		}
		var e *fileerror.Error
		if err != nil && (!errors.As(err, &e) || e.Line == 0) {
			t.Fatalf("Add(%x) = %T %v; want an error with the number of a node", in, err, err)
		}
	})
}
