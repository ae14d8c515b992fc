// Package adapter puts the records of known telemetry systems onto the four
// primitives, as Table 2 of the paper maps them: each record knows its report,
// and can be read back from the value, path or list entry that comes of it.
// How a switch gets at a record is the system's own work, and where reports go
// is the reporter's.
// Origin: docs/papers.md#dta. Examples: docs/collector.md#other-systems.
package adapter

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ErrSize is returned for bytes that are not the record they are read as.
var ErrSize = errors.New("adapter: not the size of the record")

// Scratch is memory for the key and data of one report, which alias it.
type Scratch struct {
	key  [dta.MaxKey]byte
	data [64]byte
}

// flow returns the canonical bytes of a flow.
func (s *Scratch) flow(f model.FlowKey) []byte { return f.AppendTo(s.key[:0]) }

// tagged returns a key of a tag and a flow. An IPv6 flow leaves no room for
// the tag; 64 bits of its hash stand for it then.
func (s *Scratch) tagged(tag []byte, f model.FlowKey) []byte {
	k := append(s.key[:0], tag...)
	if len(k)+f.Len() <= dta.MaxKey {
		return f.AppendTo(k)
	}
	return binary.BigEndian.AppendUint64(k, f.Hash(0))
}

// address returns the bytes of an address: 4, or 16.
func (s *Scratch) address(a model.Addr) []byte {
	if a.Is4() {
		return binary.BigEndian.AppendUint32(s.key[:0], a.V4())
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(s.key[:0], a.Hi), a.Lo)
}

func (s *Scratch) word(v uint32) []byte { return binary.BigEndian.AppendUint32(s.data[:0], v) }

// Word reads a value of 4 bytes: a counter, or what one hop reported.
func Word(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, ErrSize
	}
	return binary.BigEndian.Uint32(value), nil
}

func keyWrite(copies uint8, key, data []byte) dta.Report {
	return dta.Report{Primitive: dta.KeyWrite, Redundancy: copies, Key: key, Data: data}
}

// Events go on lists one by one, and a lost one is not told by the next: they
// can be sent again.
func appendTo(list dta.ListID, data []byte) dta.Report {
	return dta.Report{Primitive: dta.Append, Retransmit: true, List: list, Data: data}
}
