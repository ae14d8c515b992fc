package keyed

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// Metric is what a counter counts, as seen from the host.
type Metric uint8

// Metrics.
const (
	SentBytes Metric = iota
	SentPackets
	ReceivedBytes
	ReceivedPackets
	ReceivedMarked // packets that arrive with a congestion mark (ECN's CE)

	Metrics = int(iota) // number of values
)

// Counts are counters by Metric.
type Counts [Metrics]uint64

// Plus adds counters.
func (c Counts) Plus(o Counts) Counts {
	for i := range c {
		c[i] += o[i]
	}
	return c
}

// MaxDelta is the most that one report may add: what a port of 800 Gb/s sends in 47
// minutes. It keeps a switch from subtracting, and a single report from making a
// counter useless.
const MaxDelta = 1 << 48

// Lengths of encoded keys of counters.
const (
	Host4KeySize = 12
	Host6KeySize = 24
)

// HostKey is the key of a counter of one host and priority, at the switch that the
// host is attached to. That switch alone counts, so no packet is counted twice on its
// path.
type HostKey struct {
	Switch model.NodeID
	Host   model.Addr
	Class  model.Priority
	Metric Metric
}

// AppendTo appends the encoded key. An IPv4 address takes 4 bytes.
func (k HostKey) AppendTo(b []byte) []byte {
	b = append(b, byte(HostCounterKind), byte(k.Metric), byte(k.Class), 0)
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
	case Kind(b[0]) != HostCounterKind:
		return ErrKind
	case int(b[1]) >= Metrics:
		return ErrMetric
	case b[2] >= Classes, b[3] != 0:
		return ErrZero
	}
	var host model.Addr
	if len(b) == Host4KeySize {
		host = model.Addr4(binary.BigEndian.Uint32(b[8:]))
	} else if host = (model.Addr{Hi: binary.BigEndian.Uint64(b[8:]), Lo: binary.BigEndian.Uint64(b[16:])}); host.Is4() {
		return ErrShort // it has a shorter form
	}
	*k = HostKey{
		Switch: model.NodeID(binary.BigEndian.Uint32(b[4:])), Host: host, Class: model.Priority(b[2]), Metric: Metric(b[1]),
	}
	return nil
}
