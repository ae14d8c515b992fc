package rocev2

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/wire/cm"
	"github.com/weft-telemetry/weft/wire/roce"
)

// RDMA_CM sets up connections with programs that are not Weft: its messages are
// datagrams between queue pairs 1 on the same UDP port. The side that accepts sends
// each region as the public prototype does, by a SEND of its address, length and
// R_Key. There is no authentication in it: a Server with Keys rejects it.

// isCM reports whether a UDP payload is for connection management.
func isCM(payload []byte) bool {
	return len(payload) > 8 && payload[5] == 0 && payload[6] == 0 && payload[7] == byte(cm.QP)
}

// isAnswer reports whether a UDP payload is for a Requester.
func isAnswer(payload []byte) bool {
	return len(payload) > 0 && (roce.Opcode(payload[0]) == roce.Acknowledge || roce.Opcode(payload[0]) == roce.AtomicAcknowledge)
}

// destQP is the queue pair that a UDP payload is for.
func destQP(payload []byte) roce.QPN {
	if len(payload) < roce.BTHSize {
		return 0
	}
	return roce.QPN(binary.BigEndian.Uint32(payload[4:]) & (1<<24 - 1))
}

// appendCM appends the UDP payload that carries a message.
func appendCM(b []byte, path rdma.Path, psn roce.PSN, m cm.Message) []byte {
	return path.AppendPayload(b, &roce.Packet{
		BTH:     roce.BTH{Opcode: roce.UDSendOnly, MigReq: true, PKey: roce.DefaultPKey, DestQP: cm.QP, PSN: psn},
		DETH:    roce.DETH{QKey: cm.QKey, SrcQP: cm.QP},
		Payload: m.AppendTo(nil),
	})
}

// parseCM parses a message that was received on path.
func parseCM(path rdma.Path, payload []byte) (m cm.Message, err error) {
	if len(payload) < roce.ICRCSize {
		return m, roce.ErrShort
	}
	if err := path.Check(payload); err != nil {
		return m, err
	}
	var p roce.Packet
	if _, err := p.Parse(payload[:len(payload)-roce.ICRCSize]); err != nil {
		return m, err
	}
	if p.BTH.Opcode != roce.UDSendOnly || p.BTH.Version != 0 || p.BTH.PKey != roce.DefaultPKey || p.DETH.QKey != cm.QKey {
		return m, fmt.Errorf("%v with Q_Key %#x to queue pair 1, want a datagram with %#x", p.BTH.Opcode, p.DETH.QKey, uint32(cm.QKey))
	}
	_, err = m.Parse(p.Data())
	return m, err
}

// regionMessageSize is the length of the message that describes a region.
const regionMessageSize = 16

// appendRegion appends the prototype's message: address, length and R_Key, lowest
// byte first. A region beyond 4 GiB is described up to there.
func appendRegion(b []byte, r rdma.Region) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Addr)
	b = binary.LittleEndian.AppendUint32(b, uint32(min(r.Length, 1<<32-1)))
	return binary.LittleEndian.AppendUint32(b, r.RKey)
}

// parseRegion parses the prototype's message.
func parseRegion(b []byte) (rdma.Region, error) {
	if len(b) != regionMessageSize {
		return rdma.Region{}, fmt.Errorf("rocev2: message of %d bytes, want address, length and R_Key in %d", len(b), regionMessageSize)
	}
	return rdma.Region{
		Addr: binary.LittleEndian.Uint64(b), Length: uint64(binary.LittleEndian.Uint32(b[8:])),
		RKey: binary.LittleEndian.Uint32(b[12:]),
	}, nil
}

// Times of RDMA_CM. A code n is 4.096 µs × 2^n.
const (
	cmTimeoutCode  = 17                     // 537 ms, for an answer
	cmResend       = 300 * time.Millisecond // a message without answer is sent again
	cmRetries      = 15
	ackTimeoutCode = 14 // 67 ms
	maxCMCode      = 24 // of a peer that needs longer: 69 s
)

// cmTime is the duration of a timeout code.
func cmTime(code uint8) time.Duration {
	return 4096 * time.Nanosecond << min(code, maxCMCode)
}

// listening is the address where a peer receives RoCEv2 packets.
func listening(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, roce.Port) }
