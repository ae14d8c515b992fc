package label

import (
	"encoding/binary"
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/checksum"
)

// Offsets into IP headers.
const (
	len4At, proto4At, check4At = 2, 9, 10
	len6At, proto6At, header6  = 4, 6, 40
)

// Params is how a switch labels a packet. The zero Params is usable.
type Params struct {
	MaxHop   uint8 // maximum labels of a packet; 0 means DefaultMaxHop
	MTU      int   // longest IP packet to make, in bytes; 0 means the limit of IP
	Specific bool  // every switch must label the packet's flow
}

// packet is an IP packet that Push and Strip may change.
type packet struct {
	b      []byte // all bytes of the caller, trailing bytes included
	header int    // length of the IP header: where labels go
	length int    // of the IP packet; bytes of b beyond it are link padding
	v6     bool
	proto  model.Proto
}

// parse reads an IP header and checks all fields that a change depends on.
//
// It fills p in place, as Push and Strip pass it by pointer: a copy of what was
// just written in small pieces costs more than the header's checksum.
func (p *packet) parse(b []byte) error {
	*p = packet{b: b}
	switch {
	case len(b) > 0 && b[0]>>4 == 4:
		p.header = int(b[0]&0xf) * 4
		if p.header < 20 || len(b) < p.header {
			return ErrLength
		}
		if checksum.Of(b[:p.header]) != 0 {
			return ErrChecksum
		}
		p.length = int(binary.BigEndian.Uint16(b[len4At:]))
		p.proto = model.Proto(b[proto4At])
	case len(b) > 0 && b[0]>>4 == 6:
		p.v6, p.header = true, header6
		if len(b) < p.header {
			return ErrLength
		}
		p.length = p.header + int(binary.BigEndian.Uint16(b[len6At:]))
		p.proto = model.Proto(b[proto6At])
		if p.length == p.header && p.proto == 0 {
			return ErrLength // a jumbogram: its length is in a hop-by-hop option
		}
	default:
		return ErrNotIP
	}
	if p.length < p.header || p.length > len(b) {
		return ErrLength
	}
	return nil
}

// block parses the packet's labels; an unlabelled packet has a zero Block.
func (p *packet) block() (k Block, err error) {
	if p.proto != Proto {
		return k, nil
	}
	if _, err = k.Parse(p.b[p.header:p.length]); err != nil {
		// A block truncated by the packet's end is as invalid as any other.
		return k, ErrBlock
	}
	return k, nil
}

// setLengthAndProto writes the packet's new length and protocol, and the IPv4 checksum
// that follows from them.
func (p *packet) setLengthAndProto(length int, proto model.Proto) {
	be := binary.BigEndian
	if p.v6 {
		be.PutUint16(p.b[len6At:], uint16(length-p.header))
		p.b[proto6At] = byte(proto)
		return
	}
	check := be.Uint16(p.b[check4At:])
	check = checksum.Update(check, be.Uint16(p.b[len4At:]), uint16(length))
	be.PutUint16(p.b[len4At:], uint16(length))
	ttlProto := be.Uint16(p.b[proto4At-1:])
	check = checksum.Update(check, ttlProto, ttlProto&0xff00|uint16(proto))
	p.b[proto4At] = byte(proto)
	be.PutUint16(p.b[check4At:], check)
}

// maxLength returns the limit of IP's length field.
func (p *packet) maxLength() int {
	if p.v6 {
		return header6 + math.MaxUint16
	}
	return math.MaxUint16
}

// Inspect returns the labels of an IP packet. The zero Block, with Len 0,
// means that the packet has none. The Block aliases pkt: read it before Push
// or Strip moves the bytes.
func Inspect(pkt []byte) (Block, error) {
	var p packet
	if err := p.parse(pkt); err != nil {
		return Block{}, err
	}
	return p.block()
}

// Push puts a label on top of the packet's labels and returns the longer
// packet, in the same memory. It overwrites pkt[len(pkt):cap(pkt)], of which
// it needs FirstGrowth bytes for the first label and ItemSize for any other.
// Bytes after the end of the IP packet, such as Ethernet padding, move along.
//
// The packet's first label sets its MaxHop and whether it is Specific; later
// switches follow it whatever their own Params. On an error pkt is unchanged
// and should be forwarded without this label.
func Push(pkt []byte, item *Item, how Params) ([]byte, error) {
	// The common case is handled here: IPv4 without options that gets its first
	// label. All other packets, and every error, are left to pushAny, which would
	// do the same in twice the time.
	const header = 20
	if len(pkt) < header || cap(pkt)-len(pkt) < FirstGrowth {
		return pushAny(pkt, item, how)
	}
	be := binary.BigEndian
	out := pkt[:len(pkt)+FirstGrowth]
	h := (*[header + FirstGrowth]byte)(out)
	length, ttlProto, check := int(be.Uint16(h[len4At:])), be.Uint16(h[proto4At-1:]), be.Uint16(h[check4At:])
	hops := how.MaxHop
	if hops == 0 {
		hops = DefaultMaxHop
	}
	// A sum of swapped words is the swapped sum: 0xffff is correct in both byte
	// orders.
	le := binary.LittleEndian
	sum := uint64(le.Uint32(h[0:])) + uint64(le.Uint32(h[4:])) + uint64(le.Uint32(h[8:])) + uint64(le.Uint32(h[12:])) + uint64(le.Uint32(h[16:]))
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	limit := math.MaxUint16
	if how.MTU > 0 {
		limit = min(limit, how.MTU)
	}
	if h[0] != 4<<4|header/4 || model.Proto(uint8(ttlProto)) == Proto || check == 0xffff || sum != 0xffff ||
		length < header || length > len(pkt) || length+FirstGrowth > limit || hops > MaxMaxHop {
		return pushAny(pkt, item, how)
	}
	copy(out[header+FirstGrowth:], pkt[header:])
	num := uint8(1)
	if how.Specific {
		num += hops
	}
	be.PutUint32(h[header:], uint32(uint8(ttlProto))<<24|uint32(num)<<16|uint32(hops)<<8|Version)
	item.putIdentity((*[ItemSize / 2]byte)(h[header+OptionSize:]))
	item.putState((*[ItemSize / 2]byte)(h[header+OptionSize+ItemSize/2:]))
	// Both changed words at once; RFC 1624 as in checksum.Update.
	labelled := ttlProto&0xff00 | uint16(Proto)
	sum = uint64(^check) + uint64(^uint16(length)) + uint64(length+FirstGrowth) + uint64(^ttlProto) + uint64(labelled)
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	be.PutUint16(h[len4At:], uint16(length+FirstGrowth))
	h[proto4At] = byte(Proto)
	be.PutUint16(h[check4At:], ^uint16(sum))
	return out, nil
}

// pushAny is Push for every packet.
func pushAny(pkt []byte, item *Item, how Params) ([]byte, error) {
	var p packet
	if err := p.parse(pkt); err != nil {
		return pkt, err
	}
	k, err := p.block()
	if err != nil {
		return pkt, err
	}
	opt, grow := k.Option, ItemSize
	if k.Len() == 0 {
		if opt, err = p.firstOption(how); err != nil {
			return pkt, err
		}
		grow = FirstGrowth
	} else {
		if k.Len() == int(opt.MaxHop) {
			return pkt, ErrFull
		}
		opt.Num++
	}
	limit := p.maxLength()
	if how.MTU > 0 {
		limit = min(limit, how.MTU)
	}
	if p.length+grow > limit {
		return pkt, ErrTooLong
	}
	if cap(pkt)-len(pkt) < grow {
		return pkt, ErrCapacity
	}

	// Everything after the IP header moves right. If that began with an option,
	// its copy lies where the label ends and is overwritten.
	out := pkt[:len(pkt)+grow]
	copy(out[p.header+grow:], pkt[p.header:])
	opt.AppendTo(out[:p.header])
	item.put((*[ItemSize]byte)(out[p.header+OptionSize:]))
	p.setLengthAndProto(p.length+grow, Proto)
	return out, nil
}

// firstOption returns the option of a packet that has no label yet.
func (p *packet) firstOption(how Params) (Option, error) {
	// 0xffff is zero too in this arithmetic, and headers with it exist, but
	// updating brings it back as 0x0000: the packet would not be restored.
	if !p.v6 && binary.BigEndian.Uint16(p.b[check4At:]) == 0xffff {
		return Option{}, ErrChecksum
	}
	o := Option{NextHeader: p.proto, Num: 1, MaxHop: how.MaxHop}
	if o.MaxHop == 0 {
		o.MaxHop = DefaultMaxHop
	}
	if o.Check() != nil {
		return Option{}, ErrBlock
	}
	if how.Specific {
		o.Num += o.MaxHop
	}
	return o, nil
}

// Strip removes all labels and returns the packet as it was before the first:
// equal in every byte, except for header fields that routers changed since,
// such as the TTL. It works in place; a packet without labels is returned
// unchanged. On an error pkt is unchanged.
func Strip(pkt []byte) ([]byte, error) {
	var p packet
	if err := p.parse(pkt); err != nil {
		return pkt, err
	}
	k, err := p.block()
	if err != nil || k.Len() == 0 {
		return pkt, err
	}
	size := k.BlockSize()
	copy(pkt[p.header:], pkt[p.header+size:])
	p.setLengthAndProto(p.length-size, k.NextHeader)
	return pkt[:len(pkt)-size], nil
}
