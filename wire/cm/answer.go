package cm

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/wire/roce"
)

// CommIDs are the numbers of a connection at both ends, the sender's first.
type CommIDs struct{ Local, Remote uint32 }

func (c CommIDs) put(b []byte) {
	binary.BigEndian.PutUint32(b[localCommID:], c.Local)
	binary.BigEndian.PutUint32(b[remoteCommID:], c.Remote)
}

func getCommIDs(b []byte) CommIDs {
	return CommIDs{binary.BigEndian.Uint32(b[localCommID:]), binary.BigEndian.Uint32(b[remoteCommID:])}
}

// REP accepts a request.
type REP struct {
	CommIDs
	LocalQPN       roce.QPN
	StartingPSN    roce.PSN // of the first packet that the sender will receive
	Responder      uint8    // responder resources
	Initiator      uint8    // initiator depth
	TargetAckDelay uint8    // 4.096 µs × 2^n, 5 bits
	RNRRetries     uint8    // 3 bits; 7 is without limit
	LocalCAGUID    uint64
	Private        [196]byte
}

func (*REP) attribute() Attribute { return AttributeREP }

func (m *REP) put(b []byte) {
	m.CommIDs.put(b)
	put24(b[12:], uint32(m.LocalQPN), 0)
	put24(b[20:], uint32(m.StartingPSN), 0)
	b[24], b[25], b[26], b[27] = m.Responder, m.Initiator, m.TargetAckDelay<<3, m.RNRRetries<<5
	binary.BigEndian.PutUint64(b[28:], m.LocalCAGUID)
	copy(b[36:], m.Private[:])
}

func (m *REP) get(b []byte) {
	*m = REP{
		CommIDs: getCommIDs(b), LocalQPN: roce.QPN(get24(b[12:])), StartingPSN: roce.PSN(get24(b[20:])),
		Responder: b[24], Initiator: b[25], TargetAckDelay: b[26] >> 3, RNRRetries: b[27] >> 5,
		LocalCAGUID: binary.BigEndian.Uint64(b[28:]), Private: [196]byte(b[36:]),
	}
}

// RTU says that the reply arrived and requests follow.
type RTU struct{ CommIDs }

func (*RTU) attribute() Attribute { return AttributeRTU }
func (m *RTU) put(b []byte)       { m.CommIDs.put(b) }
func (m *RTU) get(b []byte)       { m.CommIDs = getCommIDs(b) }

// MRA says that the answer takes longer than the request allows.
type MRA struct {
	CommIDs
	Message uint8 // received: 0 REQ, 1 REP, 2 LAP; 2 bits
	Timeout uint8 // from now, 4.096 µs × 2^n, 5 bits
}

func (*MRA) attribute() Attribute { return AttributeMRA }

func (m *MRA) put(b []byte) {
	m.CommIDs.put(b)
	b[8], b[9] = m.Message<<6, m.Timeout<<3
}

func (m *MRA) get(b []byte) {
	*m = MRA{CommIDs: getCommIDs(b), Message: b[8] >> 6, Timeout: b[9] >> 3}
}

// Reason is why a message was rejected.
type Reason uint16

// Reasons of the standard that are sent here, or that peers send.
const (
	NoQP             Reason = 1
	NoResources      Reason = 3
	Timeout          Reason = 4
	Unsupported      Reason = 5
	InvalidCommID    Reason = 6
	InvalidServiceID Reason = 8
	InvalidTransport Reason = 9
	StaleConnection  Reason = 10
	InvalidMTU       Reason = 26
	ConsumerReject   Reason = 28
)

var reasonNames = map[Reason]string{
	NoQP: "no queue pair", NoResources: "no resources", Timeout: "timeout", Unsupported: "unsupported request",
	InvalidCommID: "invalid communication id", InvalidServiceID: "invalid service id: nothing listens on that RDMA port",
	InvalidTransport: "invalid transport service type", StaleConnection: "stale connection", InvalidMTU: "invalid path MTU",
	ConsumerReject: "rejected by the program",
}

// String names the reason.
func (r Reason) String() string {
	if n, ok := reasonNames[r]; ok {
		return n
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// Error makes a rejection an error.
func (m *REJ) Error() string { return m.Reason.String() }

// REJ rejects a REQ or REP.
type REJ struct {
	CommIDs
	Message uint8 // rejected: 0 REQ, 1 REP, 2 none; 2 bits
	Reason  Reason
	Private [148]byte
}

func (*REJ) attribute() Attribute { return AttributeREJ }

func (m *REJ) put(b []byte) {
	m.CommIDs.put(b)
	b[8] = m.Message << 6
	binary.BigEndian.PutUint16(b[10:], uint16(m.Reason))
	copy(b[84:], m.Private[:])
}

func (m *REJ) get(b []byte) {
	*m = REJ{
		CommIDs: getCommIDs(b), Message: b[8] >> 6, Reason: Reason(binary.BigEndian.Uint16(b[10:])),
		Private: [148]byte(b[84:]),
	}
}

// DREQ ends a connection.
type DREQ struct {
	CommIDs
	RemoteQPN roce.QPN // of the receiver
}

func (*DREQ) attribute() Attribute { return AttributeDREQ }

func (m *DREQ) put(b []byte) {
	m.CommIDs.put(b)
	put24(b[8:], uint32(m.RemoteQPN), 0)
}

func (m *DREQ) get(b []byte) {
	*m = DREQ{CommIDs: getCommIDs(b), RemoteQPN: roce.QPN(get24(b[8:]))}
}

// DREP answers a DREQ.
type DREP struct{ CommIDs }

func (*DREP) attribute() Attribute { return AttributeDREP }
func (m *DREP) put(b []byte)       { m.CommIDs.put(b) }
func (m *DREP) get(b []byte)       { m.CommIDs = getCommIDs(b) }
