package sflow

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"
)

// Port is the UDP port of collectors.
const Port = 6343

// version is that of every datagram here.
const version = 5

// Errors of this package.
var (
	ErrShort   = errors.New("sflow: ends inside a field")
	ErrVersion = errors.New("sflow: not version 5")
	ErrAddress = errors.New("sflow: agent address is neither IPv4 nor IPv6")
	ErrLength  = errors.New("sflow: a length exceeds what contains it")
)

// Header is the start of a datagram.
type Header struct {
	Agent    netip.Addr // that took the samples; often not where the datagram came from
	SubAgent uint32     // numbers its own datagrams
	Seq      uint32     // of datagrams
	Uptime   time.Duration
	Samples  uint32 // that follow, as the agent claims
}

// AppendTo appends a header. Uptime is written in whole milliseconds, and an Agent
// that is no address as 0.0.0.0.
func (h Header) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, version)
	if a := h.Agent.Unmap(); a.Is6() {
		b = append(binary.BigEndian.AppendUint32(b, 2), a.AsSlice()...)
	} else {
		four := [4]byte{}
		copy(four[:], a.AsSlice())
		b = append(binary.BigEndian.AppendUint32(b, 1), four[:]...)
	}
	for _, v := range [...]uint32{h.SubAgent, h.Seq, uint32(h.Uptime.Milliseconds()), h.Samples} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// Parse decodes a header and returns the bytes it used.
func (h *Header) Parse(b []byte) (int, error) {
	*h = Header{}
	if len(b) < 8 {
		return 0, ErrShort
	}
	if binary.BigEndian.Uint32(b) != version {
		return 0, ErrVersion
	}
	n := 8
	switch binary.BigEndian.Uint32(b[4:]) {
	case 1:
		if len(b) < n+4 {
			return 0, ErrShort
		}
		h.Agent = netip.AddrFrom4([4]byte(b[n:]))
		n += 4
	case 2:
		if len(b) < n+16 {
			return 0, ErrShort
		}
		h.Agent = netip.AddrFrom16([16]byte(b[n:])).Unmap()
		n += 16
	default:
		return 0, ErrAddress
	}
	if len(b) < n+16 {
		*h = Header{}
		return 0, ErrShort
	}
	h.SubAgent, h.Seq = binary.BigEndian.Uint32(b[n:]), binary.BigEndian.Uint32(b[n+4:])
	h.Uptime = time.Duration(binary.BigEndian.Uint32(b[n+8:])) * time.Millisecond
	h.Samples = binary.BigEndian.Uint32(b[n+12:])
	return n + 16, nil
}

// Reader reads the samples of one datagram after the other. What it returns lies in
// the datagram.
type Reader struct {
	Header Header
	rest   []byte
	left   uint32
}

// Reset begins a datagram.
func (r *Reader) Reset(b []byte) error {
	n, err := r.Header.Parse(b)
	r.rest, r.left = b[n:], r.Header.Samples
	if err != nil {
		r.left = 0
	}
	return err
}

// Next reads the next sample into s and reports whether there was one. After an
// error inside a sample Next continues with the one after it; an error of the
// sample's length ends the datagram.
func (r *Reader) Next(s *Sample) (bool, error) {
	if r.left == 0 {
		return false, nil
	}
	r.left--
	format, body, rest, err := cutTagged(r.rest)
	if err != nil {
		r.left = 0
		return false, err
	}
	r.rest = rest
	if err := s.parse(format, body); err != nil {
		return true, err
	}
	return true, nil
}

// cutTagged returns the format and data of a tagged structure, and what follows it.
func cutTagged(b []byte) (format uint32, data, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, nil, ErrShort
	}
	format, length := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if uint64(length) > uint64(len(b)-8) {
		return 0, nil, nil, ErrLength
	}
	return format, b[8 : 8+length], b[8+length:], nil
}

// cutString returns a string and what follows it and its padding.
func cutString(b []byte) (text, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrShort
	}
	length := binary.BigEndian.Uint32(b)
	padded := (uint64(length) + 3) &^ 3
	if padded > uint64(len(b)-4) {
		return nil, nil, ErrLength
	}
	return b[4 : 4+length], b[4+padded:], nil
}

// appendString appends a string with its length and padding.
func appendString(b, text []byte) []byte {
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	for range -len(text) & 3 {
		b = append(b, 0)
	}
	return b
}
