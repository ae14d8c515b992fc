// Package probe encodes the stamp that identifies a guided probe: the first
// bytes of its payload are its sender, its series and its number in the series.
// inhost/prober makes probes; control/probe evaluates their traces.
// Origin: docs/papers.md#everflow. Layout: docs/formats/probe.md.
package probe

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Size is the length of an encoded Stamp: the part of the payload that
// distinguishes packets with equal headers.
const Size = 16

const magic = 0x57505242 // "WPRB"

// Errors of Parse and FindStamp.
var (
	ErrShort = errors.New("probe: short payload")
	ErrMagic = errors.New("probe: no stamp")
)

// Stamp identifies one probe.
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
		at = in.Transport + packet.UDPSize // a probe to RoCEv2's port has no BTH
	}
	if int(at) > len(frame) {
		return s, ErrShort
	}
	_, err = s.Parse(frame[at:])
	return s, err
}
