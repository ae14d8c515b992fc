package keyed

import (
	"encoding/binary"
	"errors"

	"github.com/weft-telemetry/weft/model"
)

// Errors of Parse.
var (
	ErrShort = errors.New("keyed: length does not fit the kind")
	ErrKind  = errors.New("keyed: unknown kind")
	ErrZero  = errors.New("keyed: reserved bits are not zero")
)

// Kind is the first byte of every key.
type Kind uint8

// Kinds of keys.
const (
	PortStateKind Kind = 1 + iota // newest state of a port
	HostKind                      // counter of a host
	ClassKind                     // counter of a priority
)

// Copies is the redundancy of every keyed report, DTA's highest. Readers rely on it:
// a value with fewer copies would be outvoted by older ones.
const Copies = 4

// KindOf returns the kind of a key; false for one that is none of Weft's.
func KindOf(key []byte) (Kind, bool) {
	if len(key) == 0 {
		return 0, false
	}
	k := Kind(key[0])
	return k, k >= PortStateKind && k <= ClassKind
}

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
