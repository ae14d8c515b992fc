// Package pfc encodes the Ethernet frames that pause a neighbour: priority-based
// flow control (IEEE 802.1Qbb) and its predecessor, the PAUSE frame (IEEE
// 802.3x). sim and the switches decide when to pause and what a pause does to a
// queue. Layout: docs/formats/pfc.md.
package pfc

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// EtherType is that of every MAC control frame.
const EtherType = 0x8808

// Size is the length of a frame without its FCS: Ethernet's minimum, most of
// it padding.
const Size = 60

// Priorities is the number of priorities in a frame.
const Priorities = 8

// Opcodes of the two frames.
const (
	opPause = 0x0001
	opPFC   = 0x0101
)

// Lengths of what comes before the padding.
const (
	headLen  = 16 // addresses, EtherType, opcode
	pauseLen = headLen + 2
	pfcLen   = headLen + 2 + 2*Priorities
)

// Errors of Parse.
var (
	ErrShort    = errors.New("pfc: short frame")
	ErrType     = errors.New("pfc: not a MAC control frame to the control group address")
	ErrOpcode   = errors.New("pfc: opcode is neither PFC nor PAUSE")
	ErrReserved = errors.New("pfc: reserved bits or padding not zero")
)

// group is the multicast address that no bridge forwards: a pause concerns one
// link only.
var group = model.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}

// Frame is one PFC or PAUSE frame.
type Frame struct {
	Src model.MAC // the port that requests the pause

	// Global marks a plain PAUSE, which pauses the whole link. Parse then sets
	// every bit of Enable and all Times to the same value, so that a receiver
	// handles both frames the same; AppendTo then writes Times[0] alone.
	Global bool

	// Enable has bit p set if the frame pauses or resumes priority p. A clear bit
	// leaves the priority as it is, whatever its time.
	Enable uint8

	// Times holds the pause time of each priority; zero resumes it.
	Times [Priorities]Quanta
}

// Pause returns the frame that pauses priority p for q, replacing what remains
// of an earlier pause. Only the low three bits of p count.
func Pause(src model.MAC, p model.Priority, q Quanta) Frame {
	f := Frame{Src: src, Enable: 1 << (p & 7)}
	f.Times[p&7] = q
	return f
}

// Resume returns the frame that ends a pause of priority p at once.
func Resume(src model.MAC, p model.Priority) Frame { return Pause(src, p, 0) }

// PauseLink returns the plain PAUSE frame that pauses all traffic for q.
func PauseLink(src model.MAC, q Quanta) Frame {
	f := Frame{Src: src, Global: true, Enable: 0xff}
	for p := range f.Times {
		f.Times[p] = q
	}
	return f
}

// PauseOf returns the pause time of priority p; zero means resume. It returns
// false if the frame leaves the priority as it is.
func (f *Frame) PauseOf(p model.Priority) (q Quanta, ok bool) {
	return f.Times[p&7], f.Enable>>(p&7)&1 == 1
}

// String describes the frame: "PFC pause of priority 3", "PFC resume of priorities 3, 4".
func (f *Frame) String() string {
	if f.Global {
		if f.Times[0] == 0 {
			return "PAUSE frame: resume"
		}
		return "PAUSE frame"
	}
	var pause, resume []string
	for p, q := range f.Times {
		switch {
		case f.Enable>>p&1 == 0:
		case q > 0:
			pause = append(pause, strconv.Itoa(p))
		default:
			resume = append(resume, strconv.Itoa(p))
		}
	}
	var parts []string
	for _, of := range []struct {
		verb string
		list []string
	}{{"pause", pause}, {"resume", resume}} {
		switch len(of.list) {
		case 0:
		case 1:
			parts = append(parts, of.verb+" of priority "+of.list[0])
		default:
			parts = append(parts, of.verb+" of priorities "+strings.Join(of.list, ", "))
		}
	}
	if len(parts) == 0 {
		return "PFC frame of no priority"
	}
	return "PFC " + strings.Join(parts, ", ")
}

// AppendTo appends the whole frame, padded to Size, and returns the extended
// slice.
func (f Frame) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = append(b, group[:]...)
	b = append(b, f.Src[:]...)
	b = be.AppendUint16(b, EtherType)
	if f.Global {
		b = be.AppendUint16(b, opPause)
		b = be.AppendUint16(b, uint16(f.Times[0]))
		return append(b, padding[:Size-pauseLen]...)
	}
	b = be.AppendUint16(b, opPFC)
	b = be.AppendUint16(b, uint16(f.Enable))
	for _, q := range f.Times {
		b = be.AppendUint16(b, uint16(q))
	}
	return append(b, padding[:Size-pfcLen]...)
}

var padding [Size]byte

// Parse decodes the frame at the start of b and returns the bytes it used,
// which are always Size. It overwrites every field of f and keeps no reference
// to b. Times of priorities that are not enabled are kept.
func (f *Frame) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*f = Frame{}
	if len(b) < Size {
		return 0, ErrShort
	}
	b = b[:Size]
	if model.MAC(b) != group || be.Uint16(b[12:]) != EtherType {
		return 0, ErrType
	}
	src := model.MAC(b[6:])
	switch be.Uint16(b[14:]) {
	case opPause:
		if !zero(b[pauseLen:]) {
			return 0, ErrReserved
		}
		*f = PauseLink(src, Quanta(be.Uint16(b[headLen:])))
	case opPFC:
		// The upper half of the vector is reserved.
		if b[headLen] != 0 || !zero(b[pfcLen:]) {
			return 0, ErrReserved
		}
		f.Src, f.Enable = src, b[headLen+1]
		for p := range f.Times {
			f.Times[p] = Quanta(be.Uint16(b[headLen+2+2*p:]))
		}
	default:
		return 0, ErrOpcode
	}
	return Size, nil
}

// IsFrame reports whether an Ethernet frame has the EtherType of a Frame, without reading more.
func IsFrame(b []byte) bool {
	return len(b) >= headLen && binary.BigEndian.Uint16(b[12:]) == EtherType
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
