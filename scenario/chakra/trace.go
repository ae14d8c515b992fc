// Package chakra reads Chakra execution traces (.et), one file for each rank:
// length-delimited protocol buffers, first the metadata, then a node for each
// operation. Running a trace is scenario's work.
//
// docs/files.md describes the format and the intended differences.
package chakra

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// NodeType is what a node does: numbers of the schema (et_def.proto).
type NodeType uint64

// Types of nodes. Those between Invalid and Comp, and above Coll, take no time
// here: metadata, memory, storage.
const (
	Comp NodeType = 4
	Send NodeType = 5
	Recv NodeType = 6
	Coll NodeType = 7
)

// CollectiveType is the operation of a Coll node.
type CollectiveType uint64

// Collectives that Weft runs. Others of the schema are rejected.
const (
	AllReduce     CollectiveType = 0
	AllGather     CollectiveType = 2
	AllToAll      CollectiveType = 6
	ReduceScatter CollectiveType = 7
)

// Node is an operation of a rank.
type Node struct {
	Number   int // in its file, from 1
	ID       uint64
	Type     NodeType
	After    []uint64 // ids of the nodes that it depends on
	Duration time.Duration

	Bytes      uint64 // comm_size
	Collective CollectiveType
	Src, Dst   uint64 // comm_src, comm_dst
	Tag        uint64 // comm_tag
}

// Trace is the traces of all ranks.
type Trace struct {
	Files []string // by rank
	Ranks [][]Node
}

// errorf returns an error about a node of a rank's file. A file of messages has
// no lines, so the number of the node takes their place.
func (t *Trace) errorf(rank, node int, format string, args ...any) error {
	return fileerror.Errorf(t.Files[rank], node, "%s", fmt.Sprintf(format, args...))
}

// Add reads the file of the next rank. Every error is a *fileerror.Error whose
// line is the number of the node.
func (t *Trace) Add(name string, data []byte) error {
	t.Files, t.Ranks = append(t.Files, name), append(t.Ranks, nil)
	rank := len(t.Files) - 1
	seen := make(map[uint64]bool)
	for number := 0; len(data) > 0; number++ {
		message, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return t.errorf(rank, max(number, 1), "message %d does not end in the file, want its length and as many bytes", number+1)
		}
		data = data[n:]
		if number == 0 {
			continue // the metadata
		}
		node, err := parseNode(message)
		node.Number = number
		switch {
		case err != nil:
			return t.errorf(rank, number, "node %d: %v", number, err)
		case seen[node.ID]:
			return t.errorf(rank, number, "node id %d again, want different ones", node.ID)
		case len(t.Ranks[rank]) == traffic.MaxFlows:
			return t.errorf(rank, number, "more than %d nodes, want fewer", traffic.MaxFlows)
		}
		seen[node.ID] = true
		t.Ranks[rank] = append(t.Ranks[rank], node)
	}
	if len(t.Ranks[rank]) == 0 {
		return t.errorf(rank, 1, "file has no node, want metadata and at least one")
	}
	return nil
}

// Fields of the schema's message Node.
const (
	fieldID       = 1
	fieldType     = 3
	fieldCtrlDeps = 4
	fieldDataDeps = 5
	fieldDuration = 7
	fieldAttr     = 10
)

func parseNode(b []byte) (node Node, err error) {
	err = fields(b, func(num protowire.Number, v uint64, text []byte) error {
		switch num {
		case fieldID:
			node.ID = v
		case fieldType:
			node.Type = NodeType(v)
		case fieldDuration:
			if v > uint64(traffic.MaxTime)/1000 {
				return fmt.Errorf("duration_micros %d, want at most %d", v, uint64(traffic.MaxTime)/1000)
			}
			node.Duration = time.Duration(v) * time.Microsecond
		case fieldCtrlDeps, fieldDataDeps:
			if text == nil {
				node.After = append(node.After, v)
			}
			for len(text) > 0 { // packed
				id, n := protowire.ConsumeVarint(text)
				if n < 0 {
					return fmt.Errorf("list of dependencies ends within a number, want whole ones")
				}
				node.After, text = append(node.After, id), text[n:]
			}
		case fieldAttr:
			return node.attribute(text)
		}
		return nil
	})
	return node, err
}

// attribute reads an attribute that Weft needs; all are whole numbers.
func (node *Node) attribute(b []byte) error {
	name, value := "", uint64(0)
	err := fields(b, func(num protowire.Number, v uint64, text []byte) error {
		if num == 1 {
			name = string(text)
		} else if text == nil {
			value = v
			if num == 15 || num == 17 { // sint32, sint64
				value = uint64(protowire.DecodeZigZag(v))
			}
		}
		return nil
	})
	switch name {
	case "comm_size":
		node.Bytes = value
	case "comm_type":
		node.Collective = CollectiveType(value)
	case "comm_src":
		node.Src = value
	case "comm_dst":
		node.Dst = value
	case "comm_tag":
		node.Tag = value
	}
	return err
}

// fields calls f for each field of a message: with its number, or its bytes.
func fields(b []byte, f func(num protowire.Number, v uint64, text []byte) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("a field has no tag, want a protocol buffer")
		}
		b = b[n:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
			if text == nil {
				text = []byte{}
			}
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var small uint32
			small, n = protowire.ConsumeFixed32(b)
			v = uint64(small)
		default:
			n = -1
		}
		if n < 0 {
			return fmt.Errorf("field %d does not end in its message, want a protocol buffer", num)
		}
		if err := f(num, v, text); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
