// Package epoch encodes a switch's answer to a polling packet: the state of its
// ports, and the counters of ports, flows and port pairs in recent epochs,
// pauses included. inswitch/epoch collects that telemetry; analyze/provenance
// builds the provenance graph from it. Origin: docs/papers.md#hawkeye.
// Layout: docs/formats/epoch.md.
package epoch

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Magic and Version open every chunk.
const (
	Magic   = 0x5745
	Version = 1
)

// Sizes of a chunk's fixed parts.
const (
	HeaderSize = 44
	crcSize    = 4
	Overhead   = HeaderSize + crcSize // what a chunk adds to its records
)

// Errors of Parse.
var (
	ErrShort    = errors.New("epoch: short chunk or record")
	ErrMagic    = errors.New("epoch: not an epoch chunk")
	ErrVersion  = errors.New("epoch: unknown version")
	ErrHeader   = errors.New("epoch: chunk index or epoch length out of range")
	ErrChecksum = errors.New("epoch: wrong checksum")
	ErrRecord   = errors.New("epoch: record of another kind or of the wrong length")
	ErrReserved = errors.New("epoch: reserved bits not zero")
	// ErrIntervals: no queue was ever paused or congested like that.
	ErrIntervals = errors.New("epoch: intervals overlap, are out of order or end before they start")
	// ErrBacklogHistory: time does not run backwards.
	ErrBacklogHistory = errors.New("epoch: points of a backlog are out of order")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flags say what a report holds and what it lacks.
type Flags uint8

// The flags. Unknown bits are kept.
const (
	Truncated   Flags = 1 << iota // the switch had more records than the report holds
	Evictions                     // the report includes flows evicted from the table
	NoFlows                       // ports and meters only: the switch keeps no flows
	ByReference                   // no records but PollRef: the report of another event has those of the same snapshot
	Returning                     // the poll came on the path of the victim's acknowledgements
)

// Header is what all chunks of one report share.
type Header struct {
	Flags       Flags
	Switch      model.NodeID
	Event       poll.Event    // the diagnosis request it answers
	Snapshot    model.Time    // when the switch froze its state, on its own clock
	EpochLength time.Duration // positive
	Dropped     uint32        // records lost to full memory, in the switch or in the report
}

// Number returns the number of the epoch that contains t. Epochs are contiguous
// from the zero of the switch's clock; the number wraps at 32 bits.
func (h *Header) Number(t model.Time) uint32 { return uint32(h.index(t)) }

// Start returns when epoch n began. Of all epochs with that number it chooses
// the one nearest to the snapshot.
func (h *Header) Start(n uint32) model.Time {
	last := h.index(h.Snapshot)
	return model.Time((last + int64(int32(n-uint32(last)))) * int64(h.EpochLength))
}

// index divides rounding down, before the clock's zero too.
func (h *Header) index(t model.Time) int64 {
	q, r := int64(t)/int64(h.EpochLength), int64(t)%int64(h.EpochLength)
	if r < 0 {
		q--
	}
	return q
}

// Chunk is a part of a report. Complete reports have every Index below Total.
type Chunk struct {
	Header
	Index, Total uint16

	// Records holds whole records back to back, including unknown kinds; a Reader
	// iterates over them. After Parse it aliases the input.
	Records []byte
}

// AppendTo appends the encoded chunk and returns the extended slice. The result
// does not parse if the records are not contiguous, if Index is not below Total
// or if EpochLength is not positive.
func (c Chunk) AppendTo(b []byte) []byte {
	start := len(b)
	b = c.appendHeader(b, len(c.Records))
	b = append(b, c.Records...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// appendHeader appends the header of a chunk with that many bytes of records.
func (c *Chunk) appendHeader(b []byte, records int) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, Magic)
	b = append(b, Version, byte(c.Flags))
	b = be.AppendUint32(b, uint32(c.Switch))
	b = be.AppendUint32(b, uint32(c.Event.Host))
	b = be.AppendUint32(b, c.Event.Number)
	b = be.AppendUint16(b, c.Index)
	b = be.AppendUint16(b, c.Total)
	b = be.AppendUint64(b, uint64(c.Snapshot))
	b = be.AppendUint64(b, uint64(c.EpochLength))
	b = be.AppendUint32(b, c.Dropped)
	return be.AppendUint32(b, uint32(records))
}

// Parse decodes the chunk at the start of b and returns the bytes it used. It
// overwrites every field of c. Records aliases b; their heads are checked, so
// that a Reader cannot fail, their contents are not.
func (c *Chunk) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*c = Chunk{}
	if len(b) < HeaderSize {
		return 0, ErrShort
	}
	if be.Uint16(b) != Magic {
		return 0, ErrMagic
	}
	if b[2] != Version {
		return 0, ErrVersion
	}
	got := Chunk{
		Header: Header{
			Flags:       Flags(b[3]),
			Switch:      model.NodeID(be.Uint32(b[4:])),
			Event:       poll.Event{Host: model.NodeID(be.Uint32(b[8:])), Number: be.Uint32(b[12:])},
			Snapshot:    model.Time(be.Uint64(b[20:])),
			EpochLength: time.Duration(be.Uint64(b[28:])),
			Dropped:     be.Uint32(b[36:]),
		},
		Index: be.Uint16(b[16:]),
		Total: be.Uint16(b[18:]),
	}
	if got.Index >= got.Total || got.EpochLength <= 0 {
		return 0, ErrHeader
	}
	end := HeaderSize + uint64(be.Uint32(b[40:]))
	if uint64(len(b)) < end+crcSize {
		return 0, ErrShort
	}
	if crc32.Checksum(b[:end], castagnoli) != be.Uint32(b[end:]) {
		return 0, ErrChecksum
	}
	got.Records = b[HeaderSize:end:end]
	for rest := got.Records; len(rest) > 0; {
		n, err := recordLen(rest)
		if err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	*c = got
	return int(end) + crcSize, nil
}

// Peek returns the switch and the snapshot's time of an encoded chunk without
// checking it, and false if b is too short for one.
func Peek(b []byte) (sw model.NodeID, at model.Time, ok bool) {
	if len(b) < HeaderSize {
		return 0, 0, false
	}
	be := binary.BigEndian
	return model.NodeID(be.Uint32(b[4:])), model.Time(be.Uint64(b[20:])), true
}
