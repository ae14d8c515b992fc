package dta

import "encoding/binary"

// Layout is one of the two base headers that the prototype can be built with.
// Only the length distinguishes them on the wire: see DetectLayout.
type Layout uint8

// The layouts, by the length of their base header in bytes.
const (
	Base2 Layout = 2 // opcode, flags: the switch programs' default
	Base3 Layout = 3 // opcode, sequence number, flags: the traffic generators', and with refusals
)

// Prototype is one datagram of the public prototype, which holds one report.
// Its Report is an ordinary one, so that a translator treats both formats
// alike; it always has
//   - a Key of 4 bytes,
//   - Data of 4, 12 or 28 bytes for KeyWrite, of 4 for Append and Postcarding,
//   - a Hop from 0 to 254: counted from 0 as everywhere in Weft, though the
//     prototype's wire counts from 1,
//   - a Path of 0, since the prototype does not carry it.
type Prototype struct {
	Layout   Layout
	Seq      uint8 // number of the report; Base3 only
	Reserved uint8 // the low 6 bits of the flags, with Base2 the low 7; kept
	Report   Report
}

// Lengths of what follows the base header, less Key-Write's data.
const (
	protoKey       = 4
	protoData      = 4
	protoKeyWrite  = 1 + protoKey
	protoAppend    = listSize + protoData
	protoIncrement = 1 + protoKey + deltaSize
	protoPostcard  = protoKey + 1 + protoData
)

// fitsKeyWrite reports whether Key-Write data of n bytes exists: with a checksum
// of 4 bytes in front it fills a slot of 8, 16 or 32.
func fitsKeyWrite(n int) bool { return n == 4 || n == 12 || n == 28 }

// fits reports whether a report of primitive p can have body bytes after its
// base header.
func fits(p Primitive, body int) bool {
	switch p {
	case KeyWrite:
		return fitsKeyWrite(body - protoKeyWrite)
	case Append:
		return body == protoAppend
	case KeyIncrement:
		return body == protoIncrement
	case Postcarding:
		return body == protoPostcard
	}
	return false
}

// DetectLayout returns the layout of a datagram of the prototype. There is no
// ambiguity: the primitive comes first in both layouts, and no primitive has
// two lengths that differ by one, as the layouts do. It returns ErrPrimitive
// for what is not the prototype's, version 1 included, and ErrLayout for a
// length that fits neither.
func DetectLayout(datagram []byte) (Layout, error) {
	if len(datagram) == 0 {
		return 0, ErrShort
	}
	p := Primitive(datagram[0])
	if p < KeyWrite || p > Postcarding {
		return 0, ErrPrimitive
	}
	for _, l := range [...]Layout{Base2, Base3} {
		if fits(p, len(datagram)-int(l)) {
			return l, nil
		}
	}
	return 0, ErrLayout
}

// Check returns an error if p cannot be encoded.
func (p *Prototype) Check() error {
	r := &p.Report
	if err := r.Check(); err != nil {
		return err
	}
	if p.Layout != Base2 && p.Layout != Base3 {
		return ErrLayout
	}
	if r.Primitive != Append && len(r.Key) != protoKey {
		return ErrKeyLen
	}
	switch r.Primitive {
	case KeyWrite:
		if !fitsKeyWrite(len(r.Data)) {
			return ErrDataLen
		}
	case Append, Postcarding:
		if len(r.Data) != protoData {
			return ErrDataLen
		}
	}
	if r.Primitive == Postcarding && r.Hop == 255 {
		return ErrHop
	}
	return nil
}

// AppendTo appends the encoded datagram. It panics if Check returns an error.
// Values for which the layout or the prototype has no field are omitted: Seq and
// Retransmit with Base2, Path, and the Redundancy of a postcard.
func (p *Prototype) AppendTo(b []byte) []byte {
	if err := p.Check(); err != nil {
		panic(err)
	}
	r := &p.Report
	b = append(b, byte(r.Primitive))
	if p.Layout == Base3 {
		b = append(b, p.Seq, byte(flagBit(r.Immediate, 7)|flagBit(r.Retransmit, 6))|p.Reserved&63)
	} else {
		b = append(b, byte(flagBit(r.Immediate, 7))|p.Reserved&127)
	}
	switch r.Primitive {
	case KeyWrite:
		b = append(b, r.Redundancy)
		b = append(b, r.Key...)
		return append(b, r.Data...)
	case Append:
		b = binary.BigEndian.AppendUint32(b, uint32(r.List))
		return append(b, r.Data...)
	case KeyIncrement:
		b = append(b, r.Redundancy)
		b = append(b, r.Key...)
		return binary.BigEndian.AppendUint64(b, r.Delta)
	default: // Postcarding
		b = append(b, r.Key...)
		b = append(b, r.Hop+1)
		return append(b, r.Data...)
	}
}

// Parse decodes a whole datagram in the given layout and returns the bytes it
// used: all of b. Key and Data alias b. It overwrites every field of p and
// allocates nothing.
func (p *Prototype) Parse(b []byte, layout Layout) (int, error) {
	*p = Prototype{}
	if layout != Base2 && layout != Base3 {
		return 0, ErrLayout
	}
	if len(b) < int(layout) {
		return 0, ErrShort
	}
	prim, flags, body := Primitive(b[0]), b[layout-1], b[layout:]
	if prim < KeyWrite || prim > Postcarding {
		return 0, ErrPrimitive
	}
	if !fits(prim, len(body)) {
		return 0, ErrLayout
	}
	p.Layout = layout
	r := &p.Report
	r.Primitive = prim
	r.Immediate = flags&0x80 != 0
	if layout == Base3 {
		p.Seq, p.Reserved = b[1], flags&63
		r.Retransmit = flags&0x40 != 0
	} else {
		p.Reserved = flags & 127
	}
	switch prim {
	case KeyWrite, KeyIncrement:
		r.Redundancy = body[0]
		r.Key = body[1:protoKeyWrite:protoKeyWrite]
		if prim == KeyWrite {
			r.Data = body[protoKeyWrite:]
		} else {
			r.Delta = binary.BigEndian.Uint64(body[protoKeyWrite:])
		}
		if r.Redundancy == 0 || r.Redundancy > MaxRedundancy {
			return 0, ErrRedundancy
		}
	case Append:
		r.List = ListID(binary.BigEndian.Uint32(body))
		r.Data = body[listSize:]
	case Postcarding:
		r.Redundancy = 1
		r.Key = body[:protoKey:protoKey]
		if body[protoKey] == 0 {
			return 0, ErrHop
		}
		r.Hop = body[protoKey] - 1
		r.Data = body[protoKey+1:]
	}
	return len(b), nil
}

// PrototypeAckSize is the length of an encoded PrototypeAck.
const PrototypeAckSize = 2

// PrototypeAck is the prototype's answer to a reporter that uses Base3.
type PrototypeAck struct {
	Seq      uint8 // the last report that arrived in order
	Nack     bool  // what came after it is missing
	Reserved uint8 // 7 bits, kept
}

// AppendTo appends the encoded answer. Reserved is cut to 7 bits.
func (a PrototypeAck) AppendTo(b []byte) []byte {
	return append(b, a.Seq, byte(flagBit(a.Nack, 7))|a.Reserved&127)
}

// Parse decodes a whole datagram and returns the bytes it used: all of b. A
// longer one is rejected, because only the length distinguishes this answer from
// an Ack.
func (a *PrototypeAck) Parse(b []byte) (int, error) {
	*a = PrototypeAck{}
	if len(b) < PrototypeAckSize {
		return 0, ErrShort
	}
	if len(b) > PrototypeAckSize {
		return 0, ErrTrailing
	}
	*a = PrototypeAck{Seq: b[0], Nack: b[1]&0x80 != 0, Reserved: b[1] & 127}
	return PrototypeAckSize, nil
}
