// Package cm encodes and decodes the messages by which RDMA connections are set up
// and ended: InfiniBand's communication management, as RDMA_CM uses it. They are
// management datagrams (MADs) between queue pairs 1, which RoCEv2 carries on its UDP
// port. Which message follows which is left to ingest/rocev2.
// Layout: docs/formats/cm.md.
package cm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/wire/roce"
)

// Size is the length of every message, and HeaderSize that of its header.
const (
	Size       = 256
	HeaderSize = 24
)

// QKey is the key of queue pair 1, and QP the pair itself.
const (
	QKey = 0x80010000
	QP   = roce.QPN(1)
)

// What Parse returns.
var (
	// ErrSize: not of the length of a management datagram.
	ErrSize = errors.New("cm: not 256 bytes")
	// ErrClass: a management datagram of another class or version.
	ErrClass = errors.New("cm: not communication management of version 2")
	// ErrAttribute: a message that is not known here.
	ErrAttribute = errors.New("cm: unknown message")
)

// Attribute is the kind of a message.
type Attribute uint16

// The messages.
const (
	AttributeREQ  Attribute = 0x10 // connection request
	AttributeMRA  Attribute = 0x11 // message received: the answer takes longer
	AttributeREJ  Attribute = 0x12 // rejected
	AttributeREP  Attribute = 0x13 // reply
	AttributeRTU  Attribute = 0x14 // ready to use
	AttributeDREQ Attribute = 0x15 // disconnect request
	AttributeDREP Attribute = 0x16 // disconnect reply
)

var attributeNames = map[Attribute]string{
	AttributeREQ: "REQ", AttributeMRA: "MRA", AttributeREJ: "REJ", AttributeREP: "REP",
	AttributeRTU: "RTU", AttributeDREQ: "DREQ", AttributeDREP: "DREP",
}

// String is the standard's name of the message.
func (a Attribute) String() string {
	if n, ok := attributeNames[a]; ok {
		return n
	}
	return fmt.Sprintf("attribute %#x", uint16(a))
}

// Fields of the header with one value.
const (
	baseVersion     = 1
	classCM         = 7
	classVersion    = 2
	methodSend      = 3
	transactionAt   = 8
	attributeAt     = 16
	localCommID     = 0 // of a message, after the header
	remoteCommID    = 4
	serviceIPPrefix = 0x0000000001 << 24 // of RDMA's port spaces; the protocol and port follow
)

// Body is one of the messages below.
type Body interface {
	attribute() Attribute
	put(b []byte) // into zero bytes, as many as follow the header
	get(b []byte) // from as many
}

// Message is a message with its transaction.
type Message struct {
	Transaction uint64 // an answer has that of the request
	Body        Body   // *REQ, *REP, *RTU, *REJ, *MRA, *DREQ or *DREP
}

// Attribute is the kind of the message.
func (m Message) Attribute() Attribute { return m.Body.attribute() }

// AppendTo appends the encoded message. Values wider than their fields are cut to
// the fields' low bits.
func (m Message) AppendTo(b []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, Size)...)
	h := b[at:]
	h[0], h[1], h[2], h[3] = baseVersion, classCM, classVersion, methodSend
	binary.BigEndian.PutUint64(h[transactionAt:], m.Transaction)
	binary.BigEndian.PutUint16(h[attributeAt:], uint16(m.Body.attribute()))
	m.Body.put(h[HeaderSize:])
	return b
}

// Parse decodes a message and returns the bytes it used. It keeps no reference to b.
// Reserved fields, and those that RoCEv2 does not use, are not kept.
func (m *Message) Parse(b []byte) (int, error) {
	*m = Message{}
	if len(b) != Size {
		return 0, ErrSize
	}
	if b[0] != baseVersion || b[1] != classCM || b[2] != classVersion || b[3] != methodSend {
		return 0, ErrClass
	}
	var body Body
	switch a := Attribute(binary.BigEndian.Uint16(b[attributeAt:])); a {
	case AttributeREQ:
		body = new(REQ)
	case AttributeMRA:
		body = new(MRA)
	case AttributeREJ:
		body = new(REJ)
	case AttributeREP:
		body = new(REP)
	case AttributeRTU:
		body = new(RTU)
	case AttributeDREQ:
		body = new(DREQ)
	case AttributeDREP:
		body = new(DREP)
	default:
		return 0, fmt.Errorf("%w: %v", ErrAttribute, a)
	}
	body.get(b[HeaderSize:])
	*m = Message{Transaction: binary.BigEndian.Uint64(b[transactionAt:]), Body: body}
	return Size, nil
}

// put24 stores 24 bits and a byte.
func put24(b []byte, v uint32, low uint8) { binary.BigEndian.PutUint32(b, v<<8|uint32(low)) }

func get24(b []byte) uint32 { return binary.BigEndian.Uint32(b) >> 8 }
