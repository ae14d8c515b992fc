// Package dta encodes and decodes the reports of Direct Telemetry Access, which
// a switch sends and a translator writes into a collector's memory. It supports
// Weft's version 1, many reports per datagram, version 2, the same with a MAC,
// and the format of the paper's public prototype, one report per datagram. Key
// hashing, slots and checksums are in collect.
// Origin: docs/papers.md#dta. Layout: docs/formats/dta.md.
package dta

import (
	"errors"
	"strconv"

	"github.com/weft-telemetry/weft/model"
)

// UDP destination ports, those of the prototype.
const (
	Port    = 40040 // reports, to a translator
	AckPort = 40044 // acknowledgements and refusals, to a reporter
)

// What Parse, Check, Reader and Writer return.
var (
	ErrShort      = errors.New("dta: short packet")
	ErrTrailing   = errors.New("dta: bytes after the end")
	ErrVersion    = errors.New("dta: not version 1 or 2")
	ErrReserved   = errors.New("dta: reserved bits are set")
	ErrMAC        = errors.New("dta: no MAC of this key")
	ErrPrimitive  = errors.New("dta: unknown primitive")
	ErrKeyLen     = errors.New("dta: key length out of range")
	ErrDataLen    = errors.New("dta: data length does not fit the primitive")
	ErrRedundancy = errors.New("dta: redundancy is not 1 to 4")
	ErrHop        = errors.New("dta: hop out of range")
	ErrLayout     = errors.New("dta: length fits no prototype layout")
)

// Primitive names what a translator does with a report.
type Primitive uint8

// The four primitives, numbered as in the prototype.
const (
	KeyWrite     Primitive = 1 // store the data under the key
	Append       Primitive = 2 // put the data at the end of a list
	KeyIncrement Primitive = 3 // add a number to the key's counter
	Postcarding  Primitive = 4 // store the data of one hop of the key's path
)

// String prints the primitive's name, or its number where it has none.
func (p Primitive) String() string {
	switch p {
	case KeyWrite:
		return "key-write"
	case Append:
		return "append"
	case KeyIncrement:
		return "key-increment"
	case Postcarding:
		return "postcarding"
	}
	return "primitive " + strconv.Itoa(int(p))
}

// ListID names a list of a collector, the target of Append.
type ListID uint32

// Limits of a version 1 report.
const (
	MaxKey        = model.MaxKeyLen // bytes of a key; the least is 1
	MaxData       = 1<<16 - 1       // bytes of data
	MaxRedundancy = 4               // copies of a keyed report; the least is 1
)

// Seq numbers the reports from one reporter to one collector. It wraps.
type Seq uint32

// Sub returns how many reports s is after t: negative when s is the earlier.
func (s Seq) Sub(t Seq) int { return int(int32(s - t)) }

func flagBit(set bool, at uint) uint32 {
	if set {
		return 1 << at
	}
	return 0
}
