// Package roce encodes and decodes RoCEv2, RDMA in UDP: the base transport
// header, the extension headers of the reliable connection's operations, and
// the invariant CRC that ends every packet. It knows no Ethernet, IP or
// connection state; queue pairs and retransmission are left to the callers.
// Layout: docs/formats/roce.md.
package roce

import (
	"errors"
	"strconv"
)

// Port is the UDP destination port of RoCEv2.
const Port = 4791

// Lengths in bytes of the headers and of the invariant CRC.
const (
	BTHSize          = 12
	RETHSize         = 16
	AtomicETHSize    = 28
	AETHSize         = 4
	AtomicAckETHSize = 8
	ImmDtSize        = 4
	DETHSize         = 8
	ICRCSize         = 4
)

// What Parse, ICRC and CheckICRC return.
var (
	// ErrShort: the input ends inside a header.
	ErrShort = errors.New("roce: short packet")
	// ErrPad: the header counts more pad bytes than the payload has.
	ErrPad = errors.New("roce: more padding than payload")
	// ErrNotUDP: the packet is not IPv4 without options or IPv6 without
	// extension headers, carrying UDP. RoCEv2 uses nothing else.
	ErrNotUDP = errors.New("roce: not a plain IPv4 or IPv6 packet with UDP")
	// ErrICRC: the packet was damaged in transit, or its sender omitted the
	// invariant CRC.
	ErrICRC = errors.New("roce: wrong invariant CRC")
)

// Opcode says what a packet does and which extension headers follow. Its top
// three bits name the transport service.
type Opcode uint8

// Opcodes of the reliable connection (RC) service.
const (
	SendFirst          Opcode = 0x00
	SendMiddle         Opcode = 0x01
	SendLast           Opcode = 0x02
	SendLastImm        Opcode = 0x03
	SendOnly           Opcode = 0x04
	SendOnlyImm        Opcode = 0x05
	WriteFirst         Opcode = 0x06
	WriteMiddle        Opcode = 0x07
	WriteLast          Opcode = 0x08
	WriteLastImm       Opcode = 0x09
	WriteOnly          Opcode = 0x0a
	WriteOnlyImm       Opcode = 0x0b
	ReadRequest        Opcode = 0x0c
	ReadResponseFirst  Opcode = 0x0d
	ReadResponseMiddle Opcode = 0x0e
	ReadResponseLast   Opcode = 0x0f
	ReadResponseOnly   Opcode = 0x10
	Acknowledge        Opcode = 0x11
	AtomicAcknowledge  Opcode = 0x12
	CmpSwap            Opcode = 0x13
	FetchAdd           Opcode = 0x14
)

// Opcodes that are seen beside the reliable connection.
const (
	UDSendOnly    Opcode = 0x64 // unreliable datagram: carries connection management
	UDSendOnlyImm Opcode = 0x65
	CNP           Opcode = 0x81 // congestion notification, to a sender of marked packets
)

var opcodeNames = map[Opcode]string{
	SendFirst:          "send-first",
	SendMiddle:         "send-middle",
	SendLast:           "send-last",
	SendLastImm:        "send-last-imm",
	SendOnly:           "send-only",
	SendOnlyImm:        "send-only-imm",
	WriteFirst:         "write-first",
	WriteMiddle:        "write-middle",
	WriteLast:          "write-last",
	WriteLastImm:       "write-last-imm",
	WriteOnly:          "write-only",
	WriteOnlyImm:       "write-only-imm",
	ReadRequest:        "read-request",
	ReadResponseFirst:  "read-response-first",
	ReadResponseMiddle: "read-response-middle",
	ReadResponseLast:   "read-response-last",
	ReadResponseOnly:   "read-response-only",
	Acknowledge:        "ack",
	AtomicAcknowledge:  "atomic-ack",
	CmpSwap:            "cmp-swap",
	FetchAdd:           "fetch-add",
	UDSendOnly:         "ud-send-only",
	UDSendOnlyImm:      "ud-send-only-imm",
	CNP:                "cnp",
}

// String prints the opcode's name, or its number where it has none here.
func (o Opcode) String() string {
	if n, ok := opcodeNames[o]; ok {
		return n
	}
	return "0x" + strconv.FormatUint(uint64(o), 16)
}
