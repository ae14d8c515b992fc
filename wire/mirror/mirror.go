// Package mirror encodes a mirrored packet as a report's data: the start of the
// frame as a switch received it, the switch, ports and time, and why it was
// selected. Mirrors of other vendors are in wire/erspan; inswitch/mirror selects
// the packets and analyze/trace reassembles them into traces.
// Origin: docs/papers.md#everflow. Layout: docs/formats/mirror.md.
package mirror

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// HeadSize is the length of the header before the frame.
const HeadSize = 24

const (
	magic   = 0x574d // "WM"
	version = 1
)

// Errors of Parse.
var (
	ErrShort   = errors.New("mirror: short report")
	ErrMagic   = errors.New("mirror: not a mirrored packet")
	ErrVersion = errors.New("mirror: unknown version")
	ErrReason  = errors.New("mirror: unknown reason")
	ErrLength  = errors.New("mirror: captured length exceeds the frame's length")
)

// Reasons is the set of reasons why a packet was mirrored.
type Reasons uint8

// The reasons.
const (
	Flag     Reasons = 1 << iota // TCP SYN, FIN or RST: every connection is traced
	Sample                       // one in n, the same at every switch
	Debug                        // marked by its sender
	Protocol                     // control protocols: BGP, PFC, CNP, NAK, RDMA CM
	Rule                         // a rule matched

	allReasons = Flag | Sample | Debug | Protocol | Rule
)

// Has reports whether the set contains any of the reasons x.
func (w Reasons) Has(x Reasons) bool { return w&x != 0 }

// String prints "flag+debug", or "none".
func (w Reasons) String() string {
	var names []string
	for i, name := range [...]string{"flag", "sample", "debug", "protocol", "rule"} {
		if w>>i&1 != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "+")
}

// Mirror is one packet as one switch received it.
type Mirror struct {
	Reasons Reasons
	Switch  model.NodeID
	In, Out model.PortID // 0: not known, or none
	Time    model.Time   // of the switch's clock, when the packet arrived
	Length  uint16       // of the whole frame; longer ones have the largest value
	// Frame is the start of the frame, from its Ethernet header on. Parse makes
	// it an alias of its input.
	Frame []byte
}

// AppendTo appends the encoded mirror. A frame longer than Length is truncated
// to it, and unknown reasons are omitted.
func (m *Mirror) AppendTo(b []byte) []byte {
	frame := m.Frame[:min(len(m.Frame), int(m.Length))]
	return append(m.AppendHead(b, len(frame)), frame...)
}

// AppendHead appends all but the frame, of which n bytes must follow: for
// callers that write the frame themselves and would have to copy it otherwise.
// n is at most Length.
func (m *Mirror) AppendHead(b []byte, n int) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, magic)
	b = append(b, version, byte(m.Reasons&allReasons))
	b = be.AppendUint32(b, uint32(m.Switch))
	b = be.AppendUint16(b, uint16(m.In))
	b = be.AppendUint16(b, uint16(m.Out))
	b = be.AppendUint64(b, uint64(m.Time))
	b = be.AppendUint16(b, m.Length)
	return be.AppendUint16(b, uint16(n))
}

// Parse decodes the mirror at the start of b and returns the bytes it used; the
// zeros that fill an entry of a list may follow. It overwrites every field of
// m, and Frame aliases b.
func (m *Mirror) Parse(b []byte) (int, error) {
	*m = Mirror{}
	if len(b) < HeadSize {
		return 0, ErrShort
	}
	be := binary.BigEndian
	length, captured := be.Uint16(b[20:]), be.Uint16(b[22:])
	n := HeadSize + int(captured)
	switch {
	case be.Uint16(b) != magic:
		return 0, ErrMagic
	case b[2] != version:
		return 0, ErrVersion
	case Reasons(b[3])&^allReasons != 0:
		return 0, ErrReason
	case captured > length:
		return 0, ErrLength
	case len(b) < n:
		return 0, ErrShort
	}
	*m = Mirror{
		Reasons: Reasons(b[3]),
		Switch:  model.NodeID(be.Uint32(b[4:])),
		In:      model.PortID(be.Uint16(b[8:])),
		Out:     model.PortID(be.Uint16(b[10:])),
		Time:    model.Time(be.Uint64(b[12:])),
		Length:  length,
		Frame:   b[HeadSize:n:n],
	}
	return n, nil
}

// shardSeed makes the choice of an analyzer independent of ECMP, for which
// switches use the same hash with other seeds.
const shardSeed = 0x6d6972726f72

// Shard returns the number, below n, of the analyzer that gets a flow's mirrors.
// Every switch uses the innermost key, which a tunnel does not change: all
// mirrors of a packet reach the same analyzer, whatever n is. The paper calls
// it the reshuffler.
func Shard(key *model.FlowKey, n uint32) uint32 {
	return uint32(key.Hash(shardSeed) >> 32 * uint64(n) >> 32)
}

// Peek returns the switch and the time of an encoded mirror without checking it,
// and false if b is too short for one.
func Peek(b []byte) (sw model.NodeID, at model.Time, ok bool) {
	if len(b) < HeadSize {
		return 0, 0, false
	}
	be := binary.BigEndian
	return model.NodeID(be.Uint32(b[4:])), model.Time(be.Uint64(b[12:])), true
}
