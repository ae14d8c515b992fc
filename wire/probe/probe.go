// Package probe encodes the stamp by which a guided probe is known: the first
// bytes of its payload say who sent it, in which series, and its number there.
// Making probes is inhost/prober's work, reading their traces control/probe's.
// Origin: docs/papers.md#everflow. Layout: docs/formats/probe.md.
package probe

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Size is the length of an encoded Stamp: as much of a payload as tells packets
// apart that are alike in all headers.
const Size = 16

const magic = 0x57505242 // "WPRB"

// Errors of Parse and Of.
var (
	ErrShort = errors.New("probe: short payload")
	ErrMagic = errors.New("probe: no stamp")
)

// Stamp names one probe.
type Stamp struct {
	Origin model.NodeID // the host that sends it
	Series uint32
	Number uint32 // in the series, from 0
}

// AppendTo appends the encoded stamp.
func (s Stamp) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, magic)
	b = be.AppendUint32(b, uint32(s.Origin))
	b = be.AppendUint32(b, s.Series)
	return be.AppendUint32(b, s.Number)
}

// Parse decodes the stamp at the start of b and returns the bytes it used. It
// overwrites every field of s and keeps no reference to b.
func (s *Stamp) Parse(b []byte) (int, error) {
	*s = Stamp{}
	if len(b) < Size {
		return 0, ErrShort
	}
	be := binary.BigEndian
	if be.Uint32(b) != magic {
		return 0, ErrMagic
	}
	*s = Stamp{Origin: model.NodeID(be.Uint32(b[4:])), Series: be.Uint32(b[8:]), Number: be.Uint32(b[12:])}
	return Size, nil
}

// FindStamp reads the stamp of a captured frame.
func FindStamp(frame []byte) (s Stamp, err error) {
	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		return s, err
	}
	in := p.Innermost()
	at := in.Payload
	if in.Key.Proto == model.UDP {
		at = in.Transport + packet.UDPSize // a probe on RoCEv2's port has no transport header of it
	}
	if int(at) > len(frame) {
		return s, ErrShort
	}
	_, err = s.Parse(frame[at:])
	return s, err
}
