package dta

import "encoding/binary"

// Report is one report of version 1. Fields that its primitive does not carry
// are zero after Parse and ignored by Check and AppendTo.
type Report struct {
	Primitive  Primitive
	Immediate  bool   // notify the collector's program at once
	Retransmit bool   // the reporter keeps a copy and can send it again
	Redundancy uint8  // copies to store, 1 to 4; all but Append
	Hop        uint8  // Postcarding: index on the path, the first switch is 0
	Path       uint8  // Postcarding: hops of the whole path, 0 where not known
	List       ListID // Append
	Key        []byte // 1 to MaxKey bytes; all but Append. After Parse it aliases the input.
	Data       []byte // all but KeyIncrement. After Parse it aliases the input.
	Delta      uint64 // KeyIncrement: what to add
}

// The first 4 bytes of every report, as one word. They alone give its length.
const (
	headSize = 4

	primitiveAt  = 28 // 4 bits
	immediateAt  = 27
	retransmitAt = 26
	reservedAt   = 24 // 2 bits
	copiesAt     = 22 // 2 bits, redundancy less one
	keyLenAt     = 16 // 6 bits; data length has the 16 bits below

	listSize  = 4
	deltaSize = 8
	hopSize   = 2 // hop, path
)

// sizeOf returns the length of the report that starts with head, or why there
// is no such report.
func sizeOf(head uint32) (int, error) {
	if head>>reservedAt&3 != 0 {
		return 0, ErrReserved
	}
	key, data := int(head>>keyLenAt&63), int(head&0xffff)
	size := headSize + key + data
	switch Primitive(head >> primitiveAt) {
	case KeyWrite:
	case KeyIncrement:
		if data != deltaSize {
			return 0, ErrDataLen
		}
	case Postcarding:
		size += hopSize
	case Append:
		if head>>keyLenAt&0xff != 0 {
			return 0, ErrReserved
		}
		return size + listSize, nil
	default:
		return 0, ErrPrimitive
	}
	if key == 0 || key > MaxKey {
		return 0, ErrKeyLen
	}
	return size, nil
}

// Check returns an error if r cannot be encoded.
func (r *Report) Check() error {
	if r.Primitive < KeyWrite || r.Primitive > Postcarding {
		return ErrPrimitive
	}
	if r.Primitive != KeyIncrement && len(r.Data) > MaxData {
		return ErrDataLen
	}
	if r.Primitive == Append {
		return nil
	}
	if len(r.Key) == 0 || len(r.Key) > MaxKey {
		return ErrKeyLen
	}
	if r.Redundancy == 0 || r.Redundancy > MaxRedundancy {
		return ErrRedundancy
	}
	return nil
}

// head returns the first word of a report that passes Check.
func (r *Report) head() uint32 {
	h := uint32(r.Primitive)<<primitiveAt | flagBit(r.Immediate, immediateAt) | flagBit(r.Retransmit, retransmitAt)
	if r.Primitive == Append {
		return h | uint32(len(r.Data))
	}
	h |= uint32(r.Redundancy-1)<<copiesAt | uint32(len(r.Key))<<keyLenAt
	if r.Primitive == KeyIncrement {
		return h | deltaSize
	}
	return h | uint32(len(r.Data))
}

// Size returns how many bytes AppendTo appends for a report that passes Check.
func (r *Report) Size() int {
	size, _ := sizeOf(r.head())
	return size
}

// AppendTo appends the encoded report. It panics if Check returns an error: a
// report that cannot be encoded is a programming error, and its bytes would
// corrupt the reports after it. Writer.AddReport returns the error instead.
func (r *Report) AppendTo(b []byte) []byte {
	if err := r.Check(); err != nil {
		panic(err)
	}
	return r.appendTo(b, r.head())
}

func (r *Report) appendTo(b []byte, head uint32) []byte {
	b = binary.BigEndian.AppendUint32(b, head)
	switch r.Primitive {
	case Append:
		b = binary.BigEndian.AppendUint32(b, uint32(r.List))
		return append(b, r.Data...)
	case KeyIncrement:
		b = append(b, r.Key...)
		return binary.BigEndian.AppendUint64(b, r.Delta)
	case Postcarding:
		b = append(b, r.Hop, r.Path)
	}
	b = append(b, r.Key...)
	return append(b, r.Data...)
}

// Parse decodes the report at the start of b and returns the bytes it used.
// Key and Data alias b. It overwrites every field of r and allocates nothing.
func (r *Report) Parse(b []byte) (int, error) {
	*r = Report{}
	if len(b) < headSize {
		return 0, ErrShort
	}
	head := binary.BigEndian.Uint32(b)
	size, err := sizeOf(head)
	if err != nil {
		return 0, err
	}
	if len(b) < size {
		return 0, ErrShort
	}
	r.Primitive = Primitive(head >> primitiveAt)
	r.Immediate = head>>immediateAt&1 != 0
	r.Retransmit = head>>retransmitAt&1 != 0
	at := headSize
	if r.Primitive == Append {
		r.List = ListID(binary.BigEndian.Uint32(b[at:]))
		r.Data = b[at+listSize : size : size]
		return size, nil
	}
	r.Redundancy = uint8(head>>copiesAt&3) + 1
	if r.Primitive == Postcarding {
		r.Hop, r.Path = b[at], b[at+1]
		at += hopSize
	}
	end := at + int(head>>keyLenAt&63)
	r.Key = b[at:end:end]
	if r.Primitive == KeyIncrement {
		r.Delta = binary.BigEndian.Uint64(b[end:])
	} else {
		r.Data = b[end:size:size]
	}
	return size, nil
}
