package flowset

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// Config is the shape, timing and export of a switch's flowsets.
type Config struct {
	// Slot is how long a flowset is filled. Slots begin at multiples of it on
	// the switch's clock.
	Slot time.Duration
	// PerPort keeps a flowset for every ingress port instead of one for the
	// switch.
	PerPort bool
	// Outgoing counts packets as they leave the switch, in the slot in which they
	// arrived: what a flowset of incoming packets has more in that slot, the switch
	// has dropped. No packet is in flight between the two.
	Outgoing bool
	// Linger is how long after a slot's end its outgoing packets are counted: the
	// longest that one waits in the switch. Later ones count as missed.
	Linger time.Duration
	// IPv4 and IPv6 are the tables of each family. A family without cells has
	// no table; its packets count as unkeyed in the other.
	IPv4, IPv6 Table
	// ProbeMark is the bits of the DSCP field that probes carry, as the prober
	// sets them. A packet with one of them that has a probe's stamp is counted as
	// a probe and is in no table. 0: probes are counted like other packets.
	ProbeMark uint8
	// Seed is drawn at random when the switch starts. Every switch and port
	// derives its own from it, so that neighbours do not share their collisions
	// and no sender can choose flows that collide.
	Seed uint64
	// List is where this switch's reports go. No two switches share one.
	List dta.ListID
	// ChunkBytes is the longest chunk in bytes. 0 means the largest report in a
	// datagram of 1,500 bytes, or of the switch's MTU if that is less.
	ChunkBytes int
	// Bursts is how many bursts the export is split into, over four fifths of
	// the following slot.
	Bursts int
}

// Table is the shape of a flowset and the layout of its cells on the wire.
type Table struct {
	sketch.Geometry
	Layout wire.Layout
}

// Layouts of cells. One byte of flow count is enough for all: a table that
// decodes has two or three flows per cell, and a full one saturates.
var (
	// PaperLayout has neither bytes nor ports. The paper sizes flow counts to
	// the number of flows; the authors' program gives them 8 bits.
	PaperLayout = wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4}
	// A byte count of four bytes holds 10 ms of 3.4 Tb/s.
	Layout4 = wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 4, Ports: 2}
	Layout6 = wire.Layout{Key: model.KeyLen6, Flows: 1, Packets: 4, Bytes: 4, Ports: 2}
	// Narrow cells are as large as PaperLayout's. They have ports up to 255 in place
	// of the upper half of the packet count, and no bytes. A cell of 65,535 packets
	// or more is full, and decoders take its flows' packets from other cells.
	NarrowLayout4 = wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 2, Ports: 1}
	NarrowLayout6 = wire.Layout{Key: model.KeyLen6, Flows: 1, Packets: 2, Ports: 1}
)

// DefaultConfig counts up to 10,000 flows of each family in slots of 10 ms.
func DefaultConfig() Config {
	p, err := Plan(10_000, 0.99, Single)
	if err != nil {
		panic(err) // within the measured range
	}
	return Config{
		Slot:   10 * time.Millisecond,
		IPv4:   Table{p.Geometry, Layout4},
		IPv6:   Table{p.Geometry, Layout6},
		Bursts: 64, ProbeMark: 1,
	}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.Slot <= 0:
		return fmt.Errorf("flowset: slot %v, want more than 0", c.Slot)
	case c.Bursts < 1:
		return fmt.Errorf("flowset: %d bursts, want at least 1", c.Bursts)
	case c.Linger < 0 || c.Linger > c.Slot/10:
		return fmt.Errorf("flowset: linger %v, want at most a tenth of the slot, %v", c.Linger, c.Slot/10)
	case c.ChunkBytes < 0:
		return fmt.Errorf("flowset: chunks of %d bytes, want at least 0", c.ChunkBytes)
	case !c.IPv4.enabled() && !c.IPv6.enabled():
		return errors.New("flowset: no table, want one for IPv4, IPv6 or both")
	}
	if err := c.IPv4.check("IPv4", model.KeyLen4); err != nil {
		return err
	}
	return c.IPv6.check("IPv6", model.KeyLen6)
}

// CheckPort returns an error if a port's number is too large for the cells.
func (c *Config) CheckPort(p model.PortID) error {
	for _, t := range []*Table{&c.IPv4, &c.IPv6} {
		if t.enabled() && t.Layout.Ports == 1 && p > math.MaxUint8 {
			return fmt.Errorf("flowset: port %d, want at most %d in cells with one byte for ports", p, math.MaxUint8)
		}
	}
	return nil
}

func (t *Table) enabled() bool { return t.TableCells > 0 }

func (t *Table) check(family string, key uint8) error {
	if !t.enabled() {
		return nil
	}
	if err := t.Geometry.Check(); err != nil {
		return fmt.Errorf("flowset: table for %s: %w", family, err)
	}
	if t.Layout.Key != key {
		return fmt.Errorf("flowset: key of %d bytes in the table for %s, want %d", t.Layout.Key, family, key)
	}
	h := wire.Header{Length: 1, Geometry: wire.Geometry(t.Geometry), Layout: t.Layout}
	if err := h.Check(); err != nil {
		return fmt.Errorf("flowset: table for %s: %w", family, err)
	}
	return nil
}

// MaxChunk returns the longest chunk in bytes on links of an MTU; 0: 1,500.
func (c *Config) MaxChunk(mtu int) int {
	if c.ChunkBytes > 0 {
		return c.ChunkBytes
	}
	const ipv6, udp = 40, 8
	report := dta.Report{Primitive: dta.Append}
	if mtu <= 0 || mtu > 1500 {
		mtu = 1500
	}
	return mtu - ipv6 - udp - dta.HeaderSize - report.Size()
}
