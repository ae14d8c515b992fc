// Package intreport encodes and decodes the telemetry reports that INT-capable
// switches send to a collector: P4.org's Telemetry Report Format 2.0, and the
// INT-MD 2.1 headers that the packets inside such reports may carry. ingest
// interprets device-specific units and finds the flow of a packet.
// Layout: docs/formats/intreport.md.
package intreport

import (
	"encoding/binary"
	"errors"
)

// DefaultPort is the UDP port that scripts for SAI's DTel commonly use. The
// format has no assigned port: make it configurable.
const DefaultPort = 32766

// Version of the report format and of the INT-MD header: both are at 2.
const Version = 2

// Errors of this package.
var (
	ErrShort    = errors.New("intreport: short input")
	ErrVersion  = errors.New("intreport: version is not 2")
	ErrLength   = errors.New("intreport: report is shorter than its metadata")
	ErrMetadata = errors.New("intreport: metadata does not fit its bitmap")
	ErrType     = errors.New("intreport: not an INT-MD header")
)

// GroupSize is the length of an encoded Group.
const GroupSize = 8

// SeqModulus is where a Group's sequence numbers wrap.
const SeqModulus = 1 << 22

// Group opens a datagram of reports, all from one hardware unit.
type Group struct {
	Hardware uint8  // 6 bits: line card or pipe within the node
	Seq      uint32 // 22 bits: counts datagrams per node, hardware and collector
	Node     uint32 // as configured by the operator
}

// AppendTo appends the encoded group header. Hardware and Seq are cut to their
// widths, so a plain counter may be given.
func (g Group) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, Version<<28|uint32(g.Hardware&0x3f)<<22|g.Seq%SeqModulus)
	return binary.BigEndian.AppendUint32(b, g.Node)
}

// Parse decodes the group header at the start of b.
func (g *Group) Parse(b []byte) (int, error) {
	*g = Group{}
	if len(b) < GroupSize {
		return 0, ErrShort
	}
	w := binary.BigEndian.Uint32(b)
	if w>>28 != Version {
		return 0, ErrVersion
	}
	*g = Group{uint8(w >> 22 & 0x3f), w % SeqModulus, binary.BigEndian.Uint32(b[4:])}
	return GroupSize, nil
}

// Reader iterates over the reports of one datagram. Reset it for the next one.
type Reader struct {
	Group Group
	rest  []byte
}

// Reset starts a datagram, the payload of a UDP packet. Reports that Next
// returns alias it.
func (r *Reader) Reset(datagram []byte) error {
	r.rest = nil
	n, err := r.Group.Parse(datagram)
	if err != nil {
		return err
	}
	r.rest = datagram[n:]
	return nil
}

// Next reads the next report into rep. Call it until it returns false and no
// error. After an error it continues with the next report if it can find where
// that begins.
func (r *Reader) Next(rep *Report) (bool, error) {
	*rep = Report{}
	if len(r.rest) == 0 {
		return false, nil
	}
	n, err := extent(r.rest)
	if err != nil {
		r.rest = nil
		return false, err
	}
	one := r.rest[:n]
	r.rest = r.rest[n:]
	if _, err := rep.Parse(one); err != nil {
		return false, err
	}
	return true, nil
}
