// Package erspan encodes and decodes mirrored frames as switches send them to a
// collector: in GRE, after an ERSPAN header of type I, II or III or a vendor's
// header. It starts at the GRE header; wire/packet handles the outer IP header
// before it and the mirrored frame after it.
// Layout: docs/formats/erspan.md.
package erspan

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/weft-telemetry/weft/wire/gre"
)

// GRE protocol types that announce a mirrored frame.
const (
	ProtoII       = 0x88be // types I and II
	ProtoIII      = 0x22eb
	ProtoMellanox = 0x8949 // SONiC on Mellanox switches
)

// Sizes in bytes.
const (
	sizeII       = 8
	sizeIII      = 12
	sizePlatform = 8
	MellanoxPad  = 22 // what Mellanox puts between GRE and the frame
)

// Errors of this package.
var (
	ErrShort    = errors.New("erspan: short packet")
	ErrGRE      = errors.New("erspan: GRE version or routing field not supported")
	ErrProtocol = errors.New("erspan: GRE protocol announces no mirrored frame")
	ErrVersion  = errors.New("erspan: header version does not fit the GRE protocol")
)

// Kind is the header between the GRE header and the frame.
type Kind uint8

// Kinds of mirror.
const (
	Padded   Kind = iota // a configured number of bytes of unknown meaning
	TypeI                // none
	TypeII               // version 1 header; GRE has a sequence number
	TypeIII              // version 2 header, optionally with a platform subheader
	Mellanox             // 22 bytes of a Mellanox header
)

// Granularity is the unit of a type III timestamp.
type Granularity uint8

// Granularities.
const (
	Per100us    Granularity = iota
	Per100ns                // wraps after 7 minutes
	PerIEEE1588             // nanoseconds within a second
	PerDevice               // as the device is configured
)

// Unit is the length of one tick, or 0 where only the device knows.
func (g Granularity) Unit() time.Duration {
	switch g {
	case Per100us:
		return 100 * time.Microsecond
	case Per100ns:
		return 100 * time.Nanosecond
	case PerIEEE1588:
		return time.Nanosecond
	}
	return 0
}

// FrameIP is the FrameType of a mirrored IP packet without Ethernet header.
const FrameIP = 2

// Mirror is one mirrored frame with its switch's metadata. Pad and
// Frame alias the parsed bytes. Fields that the Kind does not have are zero.
type Mirror struct {
	Kind Kind
	GRE  gre.Header // announces the mirror; its Seq counts those of a session

	// Types II and III.
	VLAN uint16 // 12 bits: of the frame
	COS  uint8  // 3 bits: class of service of the frame
	// Encap has 2 bits. In type II it says what carried VLAN: 0 nothing, 1 ISL,
	// 2 802.1Q, 3 a tag that is still in the frame. In type III it says what the
	// frame was: 0 good, 1 short, 2 oversized, 3 damaged.
	Encap     uint8
	Truncated bool   // the switch cut the frame
	Session   uint16 // 10 bits: mirror session of the switch

	// Type II.
	Reserved uint16 // 12 bits, kept
	Index    uint32 // 20 bits: see Port

	// Type III.
	Timestamp   uint32 // in ticks of Granularity
	SGT         uint16 // security group tag
	PDU         bool   // the frame is an Ethernet frame
	FrameType   uint8  // 5 bits: 0 Ethernet, FrameIP
	Hardware    uint8  // 6 bits: engine within the switch
	Egress      bool   // mirrored at egress
	Granularity Granularity
	HasPlatform bool
	Platform    uint64 // the platform subheader: 6 bits of id, 58 platform-specific

	Pad   []byte // Padded and Mellanox
	Frame []byte // the mirrored frame, Ethernet unless FrameType says otherwise
}

// Parse decodes b, all of what follows the outer IP header. The GRE protocol
// and flags determine the kind of mirror.
func (m *Mirror) Parse(b []byte) (int, error) {
	*m = Mirror{}
	v := Mirror{}
	n, err := v.GRE.Parse(b)
	if err == gre.ErrShort {
		return 0, ErrShort
	}
	if err != nil {
		return 0, ErrGRE
	}
	switch rest := b[n:]; {
	case v.GRE.Protocol == ProtoII && !v.GRE.HasSeq:
		v.Kind, v.Frame = TypeI, rest
	case v.GRE.Protocol == ProtoII:
		err = v.parseII(rest)
	case v.GRE.Protocol == ProtoIII:
		err = v.parseIII(rest)
	case v.GRE.Protocol == ProtoMellanox:
		v.Kind = Mellanox
		err = v.splitPad(rest, MellanoxPad)
	default:
		err = ErrProtocol
	}
	if err != nil {
		return 0, err
	}
	*m = v
	return len(b), nil
}

// ParsePadded decodes b like Parse, for a switch known to put pad bytes
// between the first 4 of the GRE header and the frame, whatever its protocol
// and flags say. Some announce a sequence number and send none, or vice versa.
func (m *Mirror) ParsePadded(b []byte, pad int) (int, error) {
	*m = Mirror{}
	v := Mirror{Kind: Padded}
	if v.GRE.ParseBase(b) != nil {
		return 0, ErrShort
	}
	if err := v.splitPad(b[gre.BaseSize:], pad); err != nil {
		return 0, err
	}
	*m = v
	return len(b), nil
}

// splitPad splits b into Pad and Frame.
func (m *Mirror) splitPad(b []byte, pad int) error {
	if pad < 0 || len(b) < pad {
		return ErrShort
	}
	m.Pad, m.Frame = b[:pad:pad], b[pad:]
	return nil
}

func (m *Mirror) parseII(b []byte) error {
	if len(b) < sizeII {
		return ErrShort
	}
	if b[0]>>4 != 1 {
		return ErrVersion
	}
	m.Kind = TypeII
	m.parseCommon(b)
	w := binary.BigEndian.Uint32(b[4:])
	m.Reserved, m.Index = uint16(w>>20), w&0xfffff
	m.Frame = b[sizeII:]
	return nil
}

func (m *Mirror) parseIII(b []byte) error {
	if len(b) < sizeIII {
		return ErrShort
	}
	if b[0]>>4 != 2 {
		return ErrVersion
	}
	be := binary.BigEndian
	m.Kind = TypeIII
	m.parseCommon(b)
	m.Timestamp, m.SGT = be.Uint32(b[4:]), be.Uint16(b[8:])
	w := be.Uint16(b[10:])
	m.PDU, m.FrameType, m.Hardware = w>>15 == 1, uint8(w>>10&0x1f), uint8(w>>4&0x3f)
	m.Egress, m.Granularity, m.HasPlatform = w>>3&1 == 1, Granularity(w>>1&3), w&1 == 1
	m.Frame = b[sizeIII:]
	if m.HasPlatform {
		if len(m.Frame) < sizePlatform {
			return ErrShort
		}
		m.Platform = be.Uint64(m.Frame)
		m.Frame = m.Frame[sizePlatform:]
	}
	return nil
}

// parseCommon decodes the word that types II and III begin with.
func (m *Mirror) parseCommon(b []byte) {
	w := binary.BigEndian.Uint32(b)
	m.VLAN, m.COS, m.Encap = uint16(w>>16&0xfff), uint8(w>>13&7), uint8(w>>11&3)
	m.Truncated, m.Session = w>>10&1 == 1, uint16(w&0x3ff)
}

// AppendTo appends the encoded mirror. Kind decides the GRE protocol, unless
// it is Padded, and whether types I and II have a sequence number. Fields are
// truncated to their widths; Mellanox's Pad is truncated, or filled with zeros, to 22
// bytes.
func (m Mirror) AppendTo(b []byte) []byte {
	g := m.GRE
	switch m.Kind {
	case TypeI:
		g.Protocol, g.HasSeq = ProtoII, false
		b = g.AppendTo(b)
	case TypeII:
		g.Protocol, g.HasSeq = ProtoII, true
		b = m.appendCommon(g.AppendTo(b), 1)
		b = binary.BigEndian.AppendUint32(b, uint32(m.Reserved)<<20|m.Index&0xfffff)
	case TypeIII:
		g.Protocol = ProtoIII
		b = m.appendIII(g.AppendTo(b))
	case Mellanox:
		g.Protocol = ProtoMellanox
		var pad [MellanoxPad]byte
		copy(pad[:], m.Pad)
		b = append(g.AppendTo(b), pad[:]...)
	default:
		b = append(g.AppendBase(b), m.Pad...)
	}
	return append(b, m.Frame...)
}

func (m Mirror) appendCommon(b []byte, version uint32) []byte {
	w := version<<28 | uint32(m.VLAN&0xfff)<<16 | uint32(m.COS&7)<<13 | uint32(m.Encap&3)<<11 | uint32(m.Session&0x3ff)
	if m.Truncated {
		w |= 1 << 10
	}
	return binary.BigEndian.AppendUint32(b, w)
}

func (m Mirror) appendIII(b []byte) []byte {
	be := binary.BigEndian
	b = m.appendCommon(b, 2)
	b = be.AppendUint32(b, m.Timestamp)
	b = be.AppendUint16(b, m.SGT)
	w := uint16(m.FrameType&0x1f)<<10 | uint16(m.Hardware&0x3f)<<4 | uint16(m.Granularity&3)<<1
	if m.PDU {
		w |= 1 << 15
	}
	if m.Egress {
		w |= 1 << 3
	}
	if m.HasPlatform {
		b = be.AppendUint16(b, w|1)
		return be.AppendUint64(b, m.Platform)
	}
	return be.AppendUint16(b, w)
}

// PlatformID returns the id that selects the layout of Platform.
func (m Mirror) PlatformID() uint8 { return uint8(m.Platform >> 58) }

// Port returns the port that the frame was mirrored at, in the switch's
// numbering. It returns false if the header has no port.
func (m Mirror) Port() (uint32, bool) {
	if m.Kind == TypeII {
		return m.Index, true
	}
	if m.Kind != TypeIII || !m.HasPlatform {
		return 0, false
	}
	word := uint32(m.Platform >> 32)
	switch m.PlatformID() {
	case 1:
		return uint32(m.Platform), true
	case 3:
		return word & 0x3fff, true
	case 5, 6:
		return word & 0xffff, true
	case 7, 0: // some switches write 0 for 7
		return word & 0xfffff, true
	}
	return 0, false
}
