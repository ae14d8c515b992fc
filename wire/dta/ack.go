package dta

import (
	"encoding/binary"
	"strconv"

	"github.com/weft-telemetry/weft/model"
)

// AckSize is the length of an encoded Ack.
const AckSize = 16

// Verdict is the translator's result for a run of reports. All but Stored are
// refusals: a reporter treats an unknown number as a refusal.
type Verdict uint8

// Verdicts.
const (
	Stored      Verdict = 0 // acknowledged
	Gap         Verdict = 1 // never arrived, but later ones did
	RateLimited Verdict = 2 // dropped to protect the collector
	Malformed   Verdict = 3 // not decodable
	Unserved    Verdict = 4 // the translator has no such list or memory
)

// String prints the verdict's name, or its number where it has none.
func (v Verdict) String() string {
	switch v {
	case Stored:
		return "stored"
	case Gap:
		return "gap"
	case RateLimited:
		return "rate-limited"
	case Malformed:
		return "malformed"
	case Unserved:
		return "unserved"
	}
	return "verdict " + strconv.Itoa(int(v))
}

// Ack is a translator's answer: an acknowledgement or a refusal of Count reports
// from First on. A reporter of version 2 gets its Acks behind an Answer.
type Ack struct {
	Verdict  Verdict
	Reporter model.NodeID
	First    Seq
	Count    uint32
}

// AppendTo appends the encoded answer.
func (a Ack) AppendTo(b []byte) []byte {
	b = append(b, version1, byte(a.Verdict), 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(a.Reporter))
	b = binary.BigEndian.AppendUint32(b, uint32(a.First))
	return binary.BigEndian.AppendUint32(b, a.Count)
}

// Parse decodes the answer at the start of b and returns the bytes it used. It
// overwrites every field of a and keeps no reference to b. The prototype's
// answer is too short to be mistaken for one.
func (a *Ack) Parse(b []byte) (int, error) {
	*a = Ack{}
	if len(b) < AckSize {
		return 0, ErrShort
	}
	if b[0] != version1 {
		return 0, ErrVersion
	}
	if b[2]|b[3] != 0 {
		return 0, ErrReserved
	}
	*a = Ack{
		Verdict:  Verdict(b[1]),
		Reporter: model.NodeID(binary.BigEndian.Uint32(b[4:])),
		First:    Seq(binary.BigEndian.Uint32(b[8:])),
		Count:    binary.BigEndian.Uint32(b[12:]),
	}
	return AckSize, nil
}
