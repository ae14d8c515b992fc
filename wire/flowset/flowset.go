// Package flowset encodes what a switch exports once per time slot: the flow
// filter and the counting table of its flowset, split into chunks. Each chunk is
// self-contained, so a lost chunk loses only its own cells. inswitch/flowset
// fills the table; analyze/flows reassembles the chunks and decodes them.
// Origin: docs/papers.md#flowradar.
// Layout: docs/formats/flowset.md.
package flowset

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Magic and Version open every chunk.
const (
	Magic   = 0x5746
	Version = 1
)

// Sizes of a chunk's fixed parts.
const (
	HeaderSize = 92
	crcSize    = 4
	Overhead   = HeaderSize + crcSize // what a chunk adds to its units
)

// Errors of Parse and Check.
var (
	ErrShort    = errors.New("flowset: short chunk")
	ErrMagic    = errors.New("flowset: not a flowset chunk")
	ErrVersion  = errors.New("flowset: unknown version")
	ErrLayout   = errors.New("flowset: bad cell layout")
	ErrGeometry = errors.New("flowset: bad geometry or slot length")
	ErrSpan     = errors.New("flowset: bad section, or units outside it")
	ErrChecksum = errors.New("flowset: wrong checksum")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is what all chunks of one flowset share. A flowset holds the flows of
// one address family: a switch that sees both fills and exports two, which
// differ in Layout.Key.
type Header struct {
	Switch model.NodeID
	Scope  model.PortID // the port it watches; 0: the whole switch

	// Seed is that of the switch's hash functions. A switch that starts its
	// slot count again takes a new seed, so (Switch, Seed, Slot) never repeats.
	Seed uint64

	Slot   uint32        // increments by one per slot; a gap is a lost slot
	Start  model.Time    // on the switch's clock
	Length time.Duration // positive

	Geometry
	Layout Layout
	Counts Counts
}

// Geometry is the shape of the filter and of the counting table.
type Geometry struct {
	FilterHashes uint8  // bits set per flow, k_f; at least 1
	FilterBits   uint32 // m_f; at least 1

	// The table is split into one sub-table per hash, so a flow never meets
	// itself. Sub-table t has the cells from t×TableCells on.
	Tables     uint8  // k_c; at least 1
	TableCells uint32 // cells of one sub-table; at least 1
}

// Counts are the encoder's totals of the slot. With all chunks received and no
// field at its limit, the cells' packets sum to Tables × Packets, and bytes and
// flows likewise: a decoder can prove that nothing is missing.
type Counts struct {
	Packets uint64 // counted into the table
	Bytes   uint64 // of those packets: Ethernet header to payload, no FCS
	Flows   uint32 // inserted: taken for new by the filter

	// Packets that are not in the table, so that no loss is silent.
	Unkeyed uint32 // packets without a key of this family, such as ARP
	Missed  uint32 // packets that arrived while no table was free
	Probes  uint32 // packets of Weft's own probes, up to MaxProbes
}

// MaxProbes is the largest count of probes that the format holds: three bytes.
const MaxProbes = 1<<24 - 1

// Section is a part of a flowset.
type Section uint8

// The sections. A unit of Filter is one byte, with filter bit i in byte i/8
// under the mask 1<<(i%8); a unit of Cells is one cell.
const (
	Filter Section = 1
	Cells  Section = 2
)

// Chunk is a run of units of one section.
type Chunk struct {
	Header
	Section Section
	First   uint32 // index of the first unit in its section
	Data    []byte // whole units; after Parse it aliases the input
}

// Units returns how many units the whole section has. It is zero for a section
// that does not exist.
func (h *Header) Units(s Section) uint32 {
	switch s {
	case Filter:
		return uint32((uint64(h.FilterBits) + 7) / 8)
	case Cells:
		return uint32(h.Tables) * h.TableCells
	}
	return 0
}

// unit returns the length of one unit in bytes.
func (h *Header) unit(s Section) int {
	if s == Cells {
		return h.Layout.Size()
	}
	return 1
}

// Check returns an error if a chunk with this header would not parse.
func (h *Header) Check() error {
	if err := h.Layout.check(); err != nil {
		return err
	}
	cells := uint64(h.Tables) * uint64(h.TableCells)
	if h.FilterHashes == 0 || h.FilterBits == 0 || cells == 0 || cells > math.MaxUint32 || h.Length <= 0 {
		return ErrGeometry
	}
	return nil
}

// Len returns the number of units in the chunk.
func (c *Chunk) Len() int {
	if u := c.unit(c.Section); u > 0 {
		return len(c.Data) / u
	}
	return 0
}

// Check returns an error if the chunk would not parse: the header must be valid,
// and Data must be one unit or more within its section.
func (c *Chunk) Check() error {
	if err := c.Header.Check(); err != nil {
		return err
	}
	n := c.Len()
	if n == 0 || n*c.unit(c.Section) != len(c.Data) || uint64(c.First)+uint64(n) > uint64(c.Units(c.Section)) {
		return ErrSpan
	}
	return nil
}

// AppendTo appends the encoded chunk and returns the extended slice. Bytes of
// Data after the last whole unit are omitted. The result does not parse if the
// chunk fails Check.
func (c Chunk) AppendTo(b []byte) []byte {
	n := c.Len()
	start := len(b)
	b = c.Open(b, Span{c.Section, c.First, uint32(n)})
	b = append(b, c.Data[:n*c.unit(c.Section)]...)
	return Seal(b, start)
}

// Open appends the head of a chunk. The caller appends the units of s, cells
// with AppendCell, and then calls Seal.
func (h *Header) Open(b []byte, s Span) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, Magic)
	b = append(b, Version, byte(s.Section))
	b = be.AppendUint32(b, uint32(h.Switch))
	b = be.AppendUint16(b, uint16(h.Scope))
	b = append(b, h.FilterHashes, h.Tables)
	b = append(b, h.Layout.Key, h.Layout.Flows, h.Layout.Packets, h.Layout.Bytes)
	b = be.AppendUint32(b, uint32(h.Layout.Ports)<<24|min(h.Counts.Probes, MaxProbes))
	b = be.AppendUint32(b, h.Slot)
	b = be.AppendUint64(b, h.Seed)
	b = be.AppendUint64(b, uint64(h.Start))
	b = be.AppendUint64(b, uint64(h.Length))
	b = be.AppendUint32(b, h.FilterBits)
	b = be.AppendUint32(b, h.TableCells)
	b = be.AppendUint64(b, h.Counts.Packets)
	b = be.AppendUint64(b, h.Counts.Bytes)
	b = be.AppendUint32(b, h.Counts.Flows)
	b = be.AppendUint32(b, h.Counts.Unkeyed)
	b = be.AppendUint32(b, h.Counts.Missed)
	b = be.AppendUint32(b, s.First)
	return be.AppendUint32(b, s.Count)
}

// Seal appends the checksum of the chunk that begins at b[start].
func Seal(b []byte, start int) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// Parse decodes the chunk at the start of b and returns the bytes it used. It
// overwrites every field of c. Data aliases b.
func (c *Chunk) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*c = Chunk{}
	if len(b) < HeaderSize {
		return 0, ErrShort
	}
	if be.Uint16(b) != Magic {
		return 0, ErrMagic
	}
	if b[2] != Version {
		return 0, ErrVersion
	}
	head := Header{
		Switch: model.NodeID(be.Uint32(b[4:])),
		Scope:  model.PortID(be.Uint16(b[8:])),
		Slot:   be.Uint32(b[20:]),
		Seed:   be.Uint64(b[24:]),
		Start:  model.Time(be.Uint64(b[32:])),
		Length: time.Duration(be.Uint64(b[40:])),
		Geometry: Geometry{
			FilterHashes: b[10], Tables: b[11],
			FilterBits: be.Uint32(b[48:]), TableCells: be.Uint32(b[52:]),
		},
		Layout: Layout{Key: b[12], Flows: b[13], Packets: b[14], Bytes: b[15], Ports: b[16]},
		Counts: Counts{
			Packets: be.Uint64(b[56:]), Bytes: be.Uint64(b[64:]), Flows: be.Uint32(b[72:]),
			Unkeyed: be.Uint32(b[76:]), Missed: be.Uint32(b[80:]), Probes: be.Uint32(b[16:]) & MaxProbes,
		},
	}
	if err := head.Check(); err != nil {
		return 0, err
	}
	section, first, count := Section(b[3]), be.Uint32(b[84:]), be.Uint32(b[88:])
	if count == 0 || uint64(first)+uint64(count) > uint64(head.Units(section)) {
		return 0, ErrSpan
	}
	end := HeaderSize + uint64(count)*uint64(head.unit(section))
	if uint64(len(b)) < end+crcSize {
		return 0, ErrShort
	}
	if crc32.Checksum(b[:end], castagnoli) != be.Uint32(b[end:]) {
		return 0, ErrChecksum
	}
	*c = Chunk{Header: head, Section: section, First: first, Data: b[HeaderSize:end:end]}
	return int(end) + crcSize, nil
}

// Peek returns the switch and the start of the slot of an encoded chunk without
// checking it, and false if b is too short for one.
func Peek(b []byte) (sw model.NodeID, start model.Time, ok bool) {
	if len(b) < HeaderSize {
		return 0, 0, false
	}
	be := binary.BigEndian
	return model.NodeID(be.Uint32(b[4:])), model.Time(be.Uint64(b[32:])), true
}
