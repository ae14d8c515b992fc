package cm

import (
	"encoding/binary"
	"net/netip"

	"github.com/weft-telemetry/weft/wire/roce"
)

// ServiceID is the service id of a port of RDMA's TCP port space, which programs
// listen on by rdma_listen.
func ServiceID(port uint16) uint64 { return serviceIPPrefix | protoTCP<<16 | uint64(port) }

// Port returns the port of a service id, and whether it is of that port space.
func Port(service uint64) (uint16, bool) {
	return uint16(service), service&^0xffff == ServiceID(0)
}

const protoTCP = 6

// MTU codes of a path: 1 is 256 bytes, 5 is 4096.
func mtuCode(bytes int) uint8 {
	code := uint8(1)
	for n := 256; n < bytes && code < 5; n *= 2 {
		code++
	}
	return code
}

func mtuOf(code uint8) int {
	if code < 1 || code > 5 {
		return 0
	}
	return 128 << code
}

// REQ asks for a connection. Only reliable connections are requested here, between
// hosts with IP addresses: fields of InfiniBand's own addressing are zero.
type REQ struct {
	LocalCommID    uint32
	ServiceID      uint64
	LocalCAGUID    uint64
	LocalQPN       roce.QPN
	StartingPSN    roce.PSN // of the first packet that the sender will receive
	Responder      uint8    // responder resources: reads and atomics that the sender accepts at once
	Initiator      uint8    // initiator depth: those that it will have unanswered
	RemoteTimeout  uint8    // time for an answer, 4.096 µs × 2^n, 5 bits
	LocalTimeout   uint8    // time that the sender needs for an answer
	Transport      uint8    // 0 is the reliable connection, 2 bits
	Retries        uint8    // of packets, 3 bits
	RNRRetries     uint8    // 3 bits; 7 is without limit
	MaxCMRetries   uint8    // of messages, 4 bits
	PKey           uint16
	MTU            int // of packets: 256 to 4096 bytes; 0 if the code is none
	AckTimeout     uint8
	HopLimit       uint8
	Local, Remote  netip.Addr // GIDs of the path
	SourcePort     uint16     // of RDMA's port space
	Source, Target netip.Addr // in the private data
	Private        [56]byte   // what follows them
}

func (*REQ) attribute() Attribute { return AttributeREQ }

func (m *REQ) put(b []byte) {
	binary.BigEndian.PutUint32(b[localCommID:], m.LocalCommID)
	binary.BigEndian.PutUint64(b[8:], m.ServiceID)
	binary.BigEndian.PutUint64(b[16:], m.LocalCAGUID)
	put24(b[32:], uint32(m.LocalQPN), m.Responder)
	put24(b[36:], 0, m.Initiator)
	b[43] = m.RemoteTimeout<<3 | m.Transport&3<<1
	put24(b[44:], uint32(m.StartingPSN), m.LocalTimeout<<3|m.Retries&7)
	binary.BigEndian.PutUint16(b[48:], m.PKey)
	b[50] = mtuCode(m.MTU)<<4 | m.RNRRetries&7
	b[51] = m.MaxCMRetries << 4
	putGID(b[56:], m.Local)
	putGID(b[72:], m.Remote)
	b[93] = m.HopLimit
	b[95] = m.AckTimeout << 3
	m.putAddresses(b[140:])
}

// putAddresses writes the private data of RDMA's IP addressing: version 0, family,
// port and addresses.
func (m *REQ) putAddresses(b []byte) {
	b[1] = 6 << 4
	if m.Target.Is4() {
		b[1] = 4 << 4
	}
	binary.BigEndian.PutUint16(b[2:], m.SourcePort)
	putIP(b[4:20], m.Source)
	putIP(b[20:36], m.Target)
	copy(b[36:], m.Private[:])
}

func (m *REQ) get(b []byte) {
	*m = REQ{
		LocalCommID: binary.BigEndian.Uint32(b[localCommID:]),
		ServiceID:   binary.BigEndian.Uint64(b[8:]),
		LocalCAGUID: binary.BigEndian.Uint64(b[16:]),
		LocalQPN:    roce.QPN(get24(b[32:])), Responder: b[35],
		Initiator:     b[39],
		RemoteTimeout: b[43] >> 3, Transport: b[43] >> 1 & 3,
		StartingPSN: roce.PSN(get24(b[44:])), LocalTimeout: b[47] >> 3, Retries: b[47] & 7,
		PKey: binary.BigEndian.Uint16(b[48:]),
		MTU:  mtuOf(b[50] >> 4), RNRRetries: b[50] & 7,
		MaxCMRetries: b[51] >> 4,
		Local:        getGID(b[56:]), Remote: getGID(b[72:]),
		HopLimit:   b[93],
		AckTimeout: b[95] >> 3,
		SourcePort: binary.BigEndian.Uint16(b[142:]),
		Private:    [56]byte(b[176:]),
	}
	if b[141]>>4 == 4 {
		m.Source, m.Target = netip.AddrFrom4([4]byte(b[156:])), netip.AddrFrom4([4]byte(b[172:]))
	} else {
		m.Source, m.Target = netip.AddrFrom16([16]byte(b[144:])), netip.AddrFrom16([16]byte(b[160:]))
	}
}

// putGID writes an address as RoCEv2's GID: that of IPv4 is mapped into IPv6.
func putGID(b []byte, a netip.Addr) {
	if a.IsValid() {
		x := a.As16()
		copy(b, x[:])
	}
}

func getGID(b []byte) netip.Addr { return netip.AddrFrom16([16]byte(b)).Unmap() }

// putIP writes an address into 16 bytes; IPv4 has the last four.
func putIP(b []byte, a netip.Addr) {
	switch {
	case a.Is4():
		x := a.As4()
		copy(b[12:], x[:])
	case a.IsValid():
		x := a.As16()
		copy(b, x[:])
	}
}
