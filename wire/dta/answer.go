package dta

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
)

// AnswerSize is the length of an encoded Answer.
const AnswerSize = 24

// Answer starts a datagram of Acks to a reporter of version 2. The MAC of all of
// it comes last. Start and Sent repeat those of the datagram that is answered: a
// reporter takes one answer for each datagram, so a copied answer has no effect.
type Answer struct {
	KeyID    uint8 // the key of the datagram that is answered
	Reporter model.NodeID
	Start    model.Time
	Sent     model.Time
}

// AppendTo appends the encoded start of an answer.
func (a Answer) AppendTo(b []byte) []byte {
	b = append(b, answer2, a.KeyID, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(a.Reporter))
	b = binary.BigEndian.AppendUint64(b, uint64(a.Start))
	return binary.BigEndian.AppendUint64(b, uint64(a.Sent))
}

// Parse decodes the start of an answer at the start of b and returns the bytes it
// used. It overwrites every field of a, keeps no reference to b and does not
// verify the MAC.
func (a *Answer) Parse(b []byte) (int, error) {
	*a = Answer{}
	if len(b) < AnswerSize {
		return 0, ErrShort
	}
	if b[0] != answer2 {
		return 0, ErrVersion
	}
	if b[2]|b[3] != 0 {
		return 0, ErrReserved
	}
	*a = Answer{
		KeyID:    b[1],
		Reporter: model.NodeID(binary.BigEndian.Uint32(b[4:])),
		Start:    model.Time(binary.BigEndian.Uint64(b[8:])),
		Sent:     model.Time(binary.BigEndian.Uint64(b[16:])),
	}
	return AnswerSize, nil
}
