package intreport

import "encoding/binary"

// Type is the type of a report's main contents.
type Type uint8

// Types. INT is the only one whose main contents this version of the format
// defines; those of any other are left in Report.Contents.
const (
	InnerOnly Type = 0
	INT       Type = 1
	IOAM      Type = 2
)

// Inner is the type of a report's inner contents.
type Inner uint8

// Inner contents. Those from Ethernet on are a packet, truncated by the device
// and padded to a multiple of four bytes.
const (
	InnerNone     Inner = 0
	InnerTLV      Inner = 1 // see TLV
	InnerDomain   Inner = 2 // in the form that Domain defines
	InnerEthernet Inner = 3
	InnerIPv4     Inner = 4
	InnerIPv6     Inner = 5
)

// Flags are the reasons for a report. The low four bits are reserved and
// preserved.
type Flags uint8

// Reasons for a report.
const (
	Dropped      Flags = 0x80 // a monitored packet was dropped
	Congested    Flags = 0x40 // a monitored queue is congested
	Tracked      Flags = 0x20 // the packet belongs to a monitored flow
	Intermediate Flags = 0x10 // sent from the middle of the path, for INT-MD
)

// Sizes of a report's fixed parts: its own header and what INT adds.
const (
	ReportSize = 4
	intSize    = 8
)

// toEnd in the length field means up to the end of the datagram.
const toEnd = 0xff

// maxMetadata is the largest value of the 8-bit count of metadata words.
const maxMetadata = 4 * 0xff

// Report is one individual report of a group: one event, usually about one
// packet. DS and Contents alias the parsed bytes.
type Report struct {
	Type  Type  // 4 bits
	Inner Inner // 4 bits
	Flags Flags
	// ToEnd marks a report that extends to the end of its datagram. It is set
	// for reports of 255 words and more; no report may follow.
	ToEnd bool
	// MDLen is the stated length of the metadata in words. For INT it is
	// computed from Metadata and DS; for other types it is preserved.
	MDLen uint8

	// Set for INT only.
	Domain   uint16 // INT domain that defines the three fields with DS in their name; 0 defines none
	DSBits   uint16
	DSStatus uint16
	Metadata        // of the reporting node; its id is in the Group
	DS       []byte // domain-specific metadata, whole words

	Contents []byte // inner contents
}

// extent returns the length of the report at the start of b.
func extent(b []byte) (int, error) {
	if len(b) < ReportSize {
		return 0, ErrShort
	}
	if b[1] == toEnd {
		return len(b), nil
	}
	n := ReportSize + 4*int(b[1])
	if n > len(b) {
		return 0, ErrShort
	}
	return n, nil
}

// Parse decodes the report at the start of b, the rest of a datagram.
func (r *Report) Parse(b []byte) (int, error) {
	*r = Report{}
	n, err := extent(b)
	if err != nil {
		return 0, err
	}
	v := Report{
		Type: Type(b[0] >> 4), Inner: Inner(b[0] & 0xf), ToEnd: b[1] == toEnd, MDLen: b[2], Flags: Flags(b[3]),
		Contents: b[ReportSize:n:n],
	}
	if v.Type == INT {
		if err := v.parseINT(); err != nil {
			return 0, err
		}
	}
	*r = v
	return n, nil
}

// parseINT moves INT's main contents from Contents into their fields.
func (r *Report) parseINT() error {
	b, md := r.Contents, 4*int(r.MDLen)
	if len(b) < intSize+md {
		return ErrLength
	}
	be := binary.BigEndian
	bits := Bits(be.Uint16(b))
	r.Domain, r.DSBits, r.DSStatus = be.Uint16(b[2:]), be.Uint16(b[4:]), be.Uint16(b[6:])
	n, err := r.Metadata.Parse(bits, b[intSize:intSize+md])
	if err != nil {
		return ErrMetadata
	}
	r.DS = b[intSize+n : intSize+md : intSize+md]
	r.Contents = b[intSize+md:]
	return nil
}

// AppendTo appends the encoded report. Contents are padded with zeros to whole
// words unless the report runs to the end of the datagram. What no field can
// state is cut: DS to whole words and to 255 words of metadata in all, Type
// and Inner to 4 bits.
func (r Report) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, byte(r.Type)<<4|byte(r.Inner)&0xf, toEnd, r.MDLen, byte(r.Flags))
	if r.Type == INT {
		be := binary.BigEndian
		b = be.AppendUint16(b, uint16(r.Bits))
		b = be.AppendUint16(b, r.Domain)
		b = be.AppendUint16(b, r.DSBits)
		b = be.AppendUint16(b, r.DSStatus)
		b = r.Metadata.AppendTo(b)
		b = append(b, r.DS[:min(len(r.DS)&^3, maxMetadata-r.Bits.Size())]...)
		b[start+2] = byte((len(b) - start - ReportSize - intSize) / 4)
	}
	b = append(b, r.Contents...)
	if words := (len(b) - start - ReportSize + 3) / 4; words < toEnd && !r.ToEnd {
		b[start+1] = byte(words)
		for len(b) < start+ReportSize+4*words {
			b = append(b, 0)
		}
	}
	return b
}

// TLVSize is the length of a TLV without its data.
const TLVSize = 4

// TLV is one element of inner contents of type InnerTLV, which are a sequence
// of them. Data aliases the parsed bytes.
type TLV struct {
	// Type is 4 bits: 0 domain-specific data, 1 Ethernet, 2 IPv4, 3 IPv6.
	Type     uint8
	Reserved uint8 // 4 bits, preserved
	Template uint16
	Data     []byte // whole words, at most 255
}

// Parse decodes the element at the start of b.
func (t *TLV) Parse(b []byte) (int, error) {
	*t = TLV{}
	if len(b) < TLVSize {
		return 0, ErrShort
	}
	n := TLVSize + 4*int(b[1])
	if len(b) < n {
		return 0, ErrShort
	}
	*t = TLV{b[0] >> 4, b[0] & 0xf, binary.BigEndian.Uint16(b[2:]), b[TLVSize:n:n]}
	return n, nil
}

// AppendTo appends the encoded element. Data is padded with zeros to whole
// words and cut at 255 of them.
func (t TLV) AppendTo(b []byte) []byte {
	data := t.Data[:min(len(t.Data), 4*0xff)]
	words := (len(data) + 3) / 4
	b = append(b, t.Type<<4|t.Reserved&0xf, byte(words))
	b = binary.BigEndian.AppendUint16(b, t.Template)
	b = append(b, data...)
	for range 4*words - len(data) {
		b = append(b, 0)
	}
	return b
}
