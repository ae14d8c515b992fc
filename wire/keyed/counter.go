package keyed

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Metric is what a counter counts.
type Metric uint8

// Metrics. Hosts send and receive; a class is counted where the switch sends, so it
// has the first two.
const (
	SentBytes Metric = iota
	SentPackets
	ReceivedBytes
	ReceivedPackets

	Metrics = int(iota) // number of values
)

// ClassMetrics is the number of metrics that a class has.
const ClassMetrics = int(SentPackets) + 1

// Classes is the number of priorities.
const Classes = 8

// Lengths of encoded keys of counters.
const (
	ClassKeySize = 8
	Host4KeySize = 10
	Host6KeySize = 22
)

// ClassKey is the key of a switch's counter of one priority.
type ClassKey struct {
	Switch model.NodeID
	Metric Metric
	Class  model.Priority
}

// AppendTo appends the encoded key.
func (k ClassKey) AppendTo(b []byte) []byte {
	b = append(b, byte(ClassKind), byte(k.Metric), byte(k.Class), 0)
	return binary.BigEndian.AppendUint32(b, uint32(k.Switch))
}

// Parse decodes a whole key.
func (k *ClassKey) Parse(b []byte) error {
	*k = ClassKey{}
	switch {
	case len(b) != ClassKeySize:
		return ErrShort
	case Kind(b[0]) != ClassKind:
		return ErrKind
	case int(b[1]) >= ClassMetrics, b[2] >= Classes, b[3] != 0:
		return ErrZero
	}
	k.Metric, k.Class = Metric(b[1]), model.Priority(b[2])
	k.Switch = model.NodeID(binary.BigEndian.Uint32(b[4:]))
	return nil
}

// HostKey is the key of a host's counter, at the switch that the host is attached to.
type HostKey struct {
	Switch model.NodeID
	Metric Metric
	Host   model.Addr
}

// AppendTo appends the encoded key. An IPv4 address takes 4 bytes.
func (k HostKey) AppendTo(b []byte) []byte {
	b = append(b, byte(HostKind), byte(k.Metric))
	b = binary.BigEndian.AppendUint32(b, uint32(k.Switch))
	if k.Host.Is4() {
		return binary.BigEndian.AppendUint32(b, k.Host.V4())
	}
	b = binary.BigEndian.AppendUint64(b, k.Host.Hi)
	return binary.BigEndian.AppendUint64(b, k.Host.Lo)
}

// Parse decodes a whole key.
func (k *HostKey) Parse(b []byte) error {
	*k = HostKey{}
	switch {
	case len(b) != Host4KeySize && len(b) != Host6KeySize:
		return ErrShort
	case Kind(b[0]) != HostKind:
		return ErrKind
	case int(b[1]) >= Metrics:
		return ErrZero
	}
	var host model.Addr
	if len(b) == Host4KeySize {
		host = model.Addr4(binary.BigEndian.Uint32(b[6:]))
	} else if host = (model.Addr{Hi: binary.BigEndian.Uint64(b[6:]), Lo: binary.BigEndian.Uint64(b[14:])}); host.Is4() {
		return ErrShort // it has a shorter form
	}
	*k = HostKey{Switch: model.NodeID(binary.BigEndian.Uint32(b[2:])), Metric: Metric(b[1]), Host: host}
	return nil
}
