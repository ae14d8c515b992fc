package trace

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// ID identifies a packet on its whole path, in and out of tunnels. IPID alone
// does not: it wraps within milliseconds on a fast link, many senders of RDMA
// leave it zero, and IPv6 has none.
type ID struct {
	Key    model.FlowKey // innermost; zero for what is not IP
	IPID   uint32
	Digest uint64 // of what forwarding does not change: sequence number, flags, start of the payload
}

// Hop is a packet as one switch saw it.
type Hop struct {
	Switch   model.NodeID
	In, Out  model.PortID // 0: not known, or none
	Time     model.Time   // of the switch's clock
	Arrived  model.Time   // the mirror, at the analyzer and by its clock
	To       model.Addr   // destination of the first IP header
	Src      model.MAC    // of the previous hop
	TTL      uint8        // of the first IP header, as it arrived; so are DSCP and ECN
	InnerTTL uint8        // of the innermost
	TOS      uint8
	Depth    uint8 // IP headers
	Why      mirror.Reasons
	Copies   uint8 // times that the packet was seen again, in the same state
}

// sameSegment reports whether two hops are in one segment of the path: between
// the same tunnel ends, or outside of any.
func (h *Hop) sameSegment(o *Hop) bool { return h.Depth == o.Depth && h.To == o.To }

// sameState reports whether two mirrors show the packet at one point of its path.
func (h *Hop) sameState(o *Hop) bool {
	return h.Switch == o.Switch && h.TTL == o.TTL && h.InnerTTL == o.InnerTTL && h.In == o.In && h.sameSegment(o)
}

// fingerprint differs for most states that differ.
func (h *Hop) fingerprint() uint32 {
	return uint32(h.Switch)<<10 ^ uint32(h.TTL)<<2 ^ uint32(h.Depth) ^ uint32(h.In)<<20
}

// rank is larger for hops earlier on the path. Clocks of switches differ and
// mirrors overtake each other, but TTLs count down: the innermost first, which
// does not change in a tunnel; then headers are removed one by one; then the
// outer header's.
func (h *Hop) rank() uint32 {
	return uint32(h.InnerTTL)<<16 | uint32(h.Depth)<<8 | uint32(h.TTL)
}

// payloadBytes is how much of the payload distinguishes packets with equal
// headers.
const payloadBytes = 16

// parseMirror makes a hop of a mirror. It fails on a frame that claims to be IP and
// is not.
func (s *mirrorScan) parseMirror(m *mirror.Mirror) error {
	p := &s.packet
	if err := p.Parse(m.Frame); err != nil {
		return err
	}
	s.hop = Hop{Switch: m.Switch, In: m.In, Out: m.Out, Time: m.Time, Src: p.Src, Why: m.Reasons}
	in := p.Innermost()
	s.id = ID{Key: in.Key, IPID: in.ID}
	if in.Key.IsZero() {
		// Nothing identifies it elsewhere: a frame is its own trace.
		s.id.Digest = mix(uint64(m.Time), uint64(m.Switch)<<16|uint64(m.In))
		return nil
	}
	s.hop.To, s.hop.TTL, s.hop.InnerTTL = p.Outer.Key.Dst, p.Outer.TTL, in.TTL
	s.hop.TOS, s.hop.Depth = p.Outer.TOS, p.Depth
	d := mix(uint64(in.Seq)<<32|uint64(in.QP), uint64(in.TCPFlags)<<16|uint64(in.Type)<<8|uint64(in.Code))
	// The payload ends where the IP packet does: after it is the padding of a
	// short frame. A truncated payload would look different elsewhere.
	start, end := int(in.Payload), min(len(m.Frame), int(in.Start+in.Length))
	if in.Flags.Has(packet.Truncated) && end-start < payloadBytes {
		end = start
	}
	for b := m.Frame[min(start, end):min(end, start+payloadBytes)]; len(b) > 0; {
		var word [8]byte
		n := copy(word[:], b)
		d = mix(d, binary.BigEndian.Uint64(word[:])^uint64(n))
		b = b[n:]
	}
	s.id.Digest = d
	return nil
}

// mirrorScan is the mirror being processed.
type mirrorScan struct {
	packet packet.Packet
	id     ID
	hop    Hop
}

func (id *ID) hash() uint64 { return id.Key.Hash(mix(id.Digest, uint64(id.IPID))) }

// mix folds two words into one of which every bit depends on both (the
// finalizer of SplitMix64).
func mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 ^ b
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
