package keyed

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// Errors of Parse.
var (
	ErrShort  = errors.New("keyed: length does not fit the kind")
	ErrKind   = errors.New("keyed: unknown kind")
	ErrZero   = errors.New("keyed: reserved bits are not zero")
	ErrMetric = errors.New("keyed: unknown metric")
)

// Kind is the first byte of every key.
type Kind uint8

// Kinds of keys.
const (
	PortStateKind   Kind = 1 // newest state of a port
	HostCounterKind Kind = 2 // counter of a host
	PostcardKind    Kind = 3 // postcards of a packet of a flow
)

// Classes is the number of priorities.
const Classes = 8

// Copies is the redundancy of every report of Key-Write and Key-Increment, DTA's
// highest. Readers rely on it: a value with fewer copies would be outvoted by older
// ones.
const Copies = 4

// PortKeySize is the length of an encoded PortKey.
const PortKeySize = 8

// PortKey is the key of a port's state.
type PortKey struct{ model.Port }

// AppendTo appends the encoded key.
func (k PortKey) AppendTo(b []byte) []byte {
	b = append(b, byte(PortStateKind), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(k.Port.Port))
	return binary.BigEndian.AppendUint32(b, uint32(k.Node))
}

// Parse decodes a whole key.
func (k *PortKey) Parse(b []byte) error {
	*k = PortKey{}
	switch {
	case len(b) != PortKeySize:
		return ErrShort
	case Kind(b[0]) != PortStateKind:
		return ErrKind
	case b[1] != 0:
		return ErrZero
	}
	k.Port.Port = model.PortID(binary.BigEndian.Uint16(b[2:]))
	k.Node = model.NodeID(binary.BigEndian.Uint32(b[4:]))
	return nil
}
