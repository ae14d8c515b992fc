// Package adapter maps the records of known telemetry systems to the four
// primitives, as in Table 2 of the paper: each record has a report, and can be
// parsed from the value, path or list entry that the report becomes. The systems
// make the records on a switch, and the reporter sends the reports.
// Origin: docs/papers.md#dta. Examples: docs/collector.md#other-systems.
package adapter

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ErrSize is returned for bytes that do not have the size of the record.
var ErrSize = errors.New("adapter: wrong size of a record")

// Scratch is memory for the key and data of one report, which alias it.
type Scratch struct {
	key  [dta.MaxKey]byte
	data [64]byte
}

// flow returns the canonical bytes of a flow.
func (s *Scratch) flow(f model.FlowKey) []byte { return f.AppendTo(s.key[:0]) }

// tagged returns a key of a tag and a flow. An IPv6 flow does not fit together
// with the tag; 64 bits of its hash represent it then.
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

// Word parses a value of 4 bytes: a counter, or the report of one hop.
func Word(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, ErrSize
	}
	return binary.BigEndian.Uint32(value), nil
}

func keyWrite(copies uint8, key, data []byte) dta.Report {
	return dta.Report{Primitive: dta.KeyWrite, Redundancy: copies, Key: key, Data: data}
}

// Events go to lists one by one, and the next event does not repeat a lost one:
// they are retransmittable.
func appendTo(list dta.ListID, data []byte) dta.Report {
	return dta.Report{Primitive: dta.Append, Retransmit: true, List: list, Data: data}
}
