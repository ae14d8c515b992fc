package keyed

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Part is one of the words that a postcard is split into: Postcarding stores 32 bits
// of each hop under a key.
type Part uint8

// Parts.
const (
	LatencyPart Part = iota
	QueuePart
	TimeHighPart
	TimeLowPart

	Parts = int(iota) // number of values
)

// Lanes is how many packets of a flow are kept. A packet's hash selects its lane, the
// same at all switches: postcards of a packet arrive with those of others that are in
// flight, and must not meet them.
const Lanes = 64

// PostcardCopies is the redundancy of postcards: many of them are replaced soon.
const PostcardCopies = 2

// Lengths of encoded keys of postcards.
const (
	Postcard4KeySize = 2 + 13
	Postcard6KeySize = 2 + 16
)

// PostcardKey is the key of a part of the postcards of one packet of a flow. It is
// that of all switches on the path, so the values name the switch.
type PostcardKey struct {
	Part Part
	Lane uint8
	flow [16]byte // an IPv4 flow, or the hash of an IPv6 flow, which is too long for a key
	v6   bool
}

// NewPostcardKey returns the key of a flow's first part.
func NewPostcardKey(flow *model.FlowKey, lane uint8) PostcardKey {
	k := PostcardKey{Lane: lane % Lanes, v6: flow.V6}
	if k.v6 {
		binary.BigEndian.PutUint64(k.flow[:], flow.Hash(flowSeed))
		binary.BigEndian.PutUint64(k.flow[8:], flow.Hash(flowSeed+1))
	} else {
		flow.AppendTo(k.flow[:0])
	}
	return k
}

// flowSeed is of the two hashes of an IPv6 flow.
const flowSeed = 0x706f7374

// AppendTo appends the encoded key.
func (k PostcardKey) AppendTo(b []byte) []byte {
	b = append(b, byte(PostcardKind), byte(k.Part)<<6|k.Lane)
	if k.v6 {
		return append(b, k.flow[:]...)
	}
	return append(b, k.flow[:Postcard4KeySize-2]...)
}

// Parse decodes a whole key.
func (k *PostcardKey) Parse(b []byte) error {
	*k = PostcardKey{}
	switch {
	case len(b) != Postcard4KeySize && len(b) != Postcard6KeySize:
		return ErrShort
	case Kind(b[0]) != PostcardKind:
		return ErrKind
	}
	k.Part, k.Lane, k.v6 = Part(b[1]>>6), b[1]&(Lanes-1), len(b) == Postcard6KeySize
	copy(k.flow[:], b[2:])
	return nil
}

// Postcard is what a switch says of a packet that leaves it.
type Postcard struct {
	Switch  model.NodeID  // at most MaxPostcardSwitch
	Latency time.Duration // since the packet arrived
	Queue   model.Bytes   // in its queue when it was enqueued
	Time    model.Time    // by the switch's clock
	Packet  uint8         // 4 bits of the packet's hash, the same at all switches
}

// MaxPostcardSwitch is the largest switch id of a postcard: it has 16 bits, and the
// last value is Postcarding's blank.
const MaxPostcardSwitch = 1<<16 - 2

// TimeUnit is that of a postcard's time, which repeats after 52 days.
const TimeUnit = time.Duration(1 << 20)

// Words returns the values of all parts.
func (p *Postcard) Words() (w [Parts]uint32) {
	t := uint32(p.Time >> 20)
	for i, v := range [...]uint32{
		encodeFloat(uint64(max(p.Latency, 0)))<<4 | uint32(p.Packet&15),
		encodeFloat(uint64(max(p.Queue, 0)))<<4 | uint32(p.Packet&15),
		t >> 16,
		t & 0xffff,
	} {
		w[i] = uint32(p.Switch)<<16 | v
	}
	return w
}

// PostcardSwitch is the switch in the value of any part.
func PostcardSwitch(word uint32) model.NodeID { return model.NodeID(word >> 16) }

// ParsePostcard decodes the values of all parts, and reports whether they are of one
// switch and packet. The time is the newest that is not after now.
func ParsePostcard(w [Parts]uint32, now model.Time) (p Postcard, ok bool) {
	for _, one := range w[1:] {
		if one>>16 != w[0]>>16 {
			return p, false
		}
	}
	if w[LatencyPart]&15 != w[QueuePart]&15 {
		return p, false
	}
	units := uint32(now >> 20)
	// Clocks differ: a time up to a quarter of the range ahead is one ahead.
	age := int64(units - (w[TimeHighPart]&0xffff<<16 | w[TimeLowPart]&0xffff))
	if age >= 3<<30 {
		age -= 1 << 32
	}
	return Postcard{
		Switch: PostcardSwitch(w[0]), Packet: uint8(w[LatencyPart] & 15),
		Latency: time.Duration(decodeFloat(w[LatencyPart] >> 4 & 0xfff)),
		Queue:   model.Bytes(decodeFloat(w[QueuePart] >> 4 & 0xfff)),
		Time:    (now>>20 - model.Time(age)) << 20,
	}, true
}

// A number of 12 bits has 7 of mantissa, without its highest bit, and 5 of exponent.
// It is exact below 256, and less than 0.4 % off up to 273 G; that is also the
// largest.
const (
	mantissaBits = 7
	maxFloat     = 1<<12 - 1
)

// encodeFloat rounds to the nearest number.
func encodeFloat(v uint64) uint32 {
	const least = 1 << mantissaBits
	if v < least {
		return uint32(v)
	}
	e := bits.Len64(v) - mantissaBits - 1
	if e > 0 {
		v = v>>e + v>>(e-1)&1
	}
	if v == 2*least {
		v, e = least, e+1
	}
	return min(uint32(e+1)<<mantissaBits|uint32(v)&(least-1), maxFloat)
}

func decodeFloat(c uint32) uint64 {
	const least = 1 << mantissaBits
	e := c >> mantissaBits
	if e == 0 {
		return uint64(c)
	}
	return uint64(least|c&(least-1)) << (e - 1)
}
