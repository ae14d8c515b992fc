package mmu

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Priorities is the number of priorities of a port.
const Priorities = 8

// Config describes the buffer of one switch. Start from DefaultConfig or
// HPCCConfig.
type Config struct {
	Buffer  model.Bytes // packet buffer of the whole switch
	Reserve model.Bytes // guaranteed to each (port, priority), used first

	// ResumeOffset is how far below a dynamic Xoff a queue's shared bytes must
	// fall before its sender is resumed.
	ResumeOffset model.Bytes

	// Accounted has one bit per priority that the buffer counts. Packets of the
	// others are not charged; they get no reserve either.
	Accounted uint8

	// Lossless has one bit per priority under PFC. The others are lossy: above
	// their threshold a packet is dropped, and they have no headroom.
	Lossless uint8

	// EgressLimit is the tail-drop limit of one lossy egress queue; 0 is none.
	EgressLimit model.Bytes

	// HPCC selects the accounting of the HPCC simulator as it is. It differs
	// from ours in three respects:
	//   - reserve and headroom are set aside for one queue of each port but
	//     granted to every queue, so two busy priorities on a port can hold
	//     more than the buffer has;
	//   - a packet that its reserve would hold is dropped all the same when it
	//     is larger than both the threshold and what is left of headroom;
	//   - at a threshold of zero every arrival pauses its sender, though its
	//     reserve is not full.
	HPCC bool

	Ports []Port // Ports[i] is port i+1
}

// Port is what may differ between ports.
type Port struct {
	// Headroom is for packets that arrive after a PAUSE was decided; one such
	// amount for each lossless priority.
	Headroom model.Bytes

	// Alpha sets a dynamic threshold: Xoff is Alpha times the free shared
	// buffer. Not used where Xoff is set.
	Alpha Alpha

	// Xoff, if above 0, is a static threshold on a queue's shared bytes; Xon
	// is where its sender is resumed.
	Xoff, Xon model.Bytes
}

// Alpha is a fraction. Den is best a power of two: others cost a division per
// packet.
type Alpha struct{ Num, Den uint32 }

// AlphaShift returns 1/2^n, the form switches and the HPCC simulator use.
func AlphaShift(n uint8) Alpha { return Alpha{1, 1 << n} }

// Link is what a headroom depends on, besides frame sizes.
type Link struct {
	Rate  model.Rate
	Delay time.Duration // one-way propagation
}

// Bounds of a Config. They keep every product within 64 bits.
const (
	maxBuffer = 1 << 40 // bytes
	maxAlpha  = 1 << 16 // both terms
	maxPorts  = 1 << 12
)

// DefaultConfig returns a buffer that is lossless for priority 3: headroom from
// HeadroomFor, 1/8 of the free shared buffer per queue. mtu is the largest
// frame on any link.
func DefaultConfig(buffer, mtu model.Bytes, links []Link) Config {
	c := Config{
		Buffer: buffer, Reserve: 4 * model.KiB, ResumeOffset: 3 * model.KiB,
		Accounted: 0xff, Lossless: 1 << 3, Ports: make([]Port, len(links)),
	}
	for i, l := range links {
		c.Ports[i] = Port{Headroom: HeadroomFor(l.Rate, l.Delay, mtu), Alpha: AlphaShift(hpccShift)}
	}
	return c
}

// Constants of the HPCC simulator.
const (
	// HPCCBuffer is its buffer where a configuration names none.
	HPCCBuffer = 12 * model.MiB

	hpccReserve = 4 * model.KiB
	hpccOffset  = 3 * model.KiB
	hpccShift   = 3
)

// HPCCConfig returns the buffer of a switch in the HPCC simulator. nic is the
// rate of the first host in node order, which thresholds are relative to.
func HPCCConfig(buffer model.Bytes, nic model.Rate, links []Link) Config {
	c := Config{
		Buffer: buffer, Reserve: hpccReserve, ResumeOffset: hpccOffset,
		Accounted: 0xfe, // queue 0 is not accounted there
		Lossless:  0xfe,
		HPCC:      true,
		Ports:     make([]Port, len(links)),
	}
	for i, l := range links {
		c.Ports[i] = Port{Headroom: HPCCHeadroom(l.Rate, l.Delay), Alpha: AlphaShift(HPCCShift(l.Rate, nic))}
	}
	return c
}

// Check reports settings that cannot work.
func (c *Config) Check() error {
	switch {
	case c.Buffer < 1 || c.Buffer > maxBuffer:
		return fmt.Errorf("mmu: buffer %v, want 1B to %v", c.Buffer, model.Bytes(maxBuffer))
	case c.Reserve < 0 || c.Reserve > maxBuffer:
		return fmt.Errorf("mmu: reserve %v, want 0B to the buffer's %v", c.Reserve, c.Buffer)
	case c.ResumeOffset < 0 || c.ResumeOffset > maxBuffer:
		return fmt.Errorf("mmu: resume offset %v, want 0B to the buffer's %v", c.ResumeOffset, c.Buffer)
	case c.EgressLimit < 0:
		return fmt.Errorf("mmu: egress limit %v, want at least 0B", c.EgressLimit)
	case c.Lossless&^c.Accounted != 0:
		return fmt.Errorf("mmu: lossless priorities %08b, want only accounted ones, which are %08b", c.Lossless, c.Accounted)
	case len(c.Ports) < 1 || len(c.Ports) > maxPorts:
		return fmt.Errorf("mmu: %d ports, want 1 to %d", len(c.Ports), maxPorts)
	}
	for i, p := range c.Ports {
		switch {
		case p.Headroom < 0 || p.Headroom > maxBuffer:
			return fmt.Errorf("mmu: port %d: headroom %v, want 0B to the buffer's %v", i+1, p.Headroom, c.Buffer)
		case p.Xoff < 0 || p.Xoff > maxBuffer:
			return fmt.Errorf("mmu: port %d: Xoff %v, want 0B (dynamic) to the buffer's %v", i+1, p.Xoff, c.Buffer)
		case p.Xoff > 0 && (p.Xon < 0 || p.Xon >= p.Xoff):
			return fmt.Errorf("mmu: port %d: Xon %v, want at least 0B and below Xoff, which is %v", i+1, p.Xon, p.Xoff)
		case p.Xoff == 0 && (p.Alpha.Num < 1 || p.Alpha.Den < 1 || p.Alpha.Num > maxAlpha || p.Alpha.Den > maxAlpha):
			return fmt.Errorf("mmu: port %d: alpha %d/%d, want both terms from 1 to %d", i+1, p.Alpha.Num, p.Alpha.Den, maxAlpha)
		}
	}
	if c.SharedBytes() < 1 {
		return fmt.Errorf("mmu: buffer %v, want more than %v: headroom takes %v and reserve %v of %d ports, and nothing is left to share",
			c.Buffer, c.headroom()+c.reserve(), c.headroom(), c.reserve(), len(c.Ports))
	}
	return nil
}

// SharedBytes returns the buffer that headroom and reserve leave for all queues
// to share. The HPCC simulator computes it without a sign: where it is negative
// here, PFC never fires there. Check rejects that.
func (c *Config) SharedBytes() model.Bytes { return c.Buffer - c.headroom() - c.reserve() }

// headroom returns the headroom of all ports.
func (c *Config) headroom() (sum model.Bytes) {
	for _, p := range c.Ports {
		sum += p.Headroom
	}
	if !c.HPCC {
		sum *= model.Bytes(bits.OnesCount8(c.Lossless))
	}
	return sum
}

// reserve returns the reserve of all queues.
func (c *Config) reserve() model.Bytes {
	n := len(c.Ports)
	if !c.HPCC {
		n *= bits.OnesCount8(c.Accounted)
	}
	return c.Reserve * model.Bytes(n)
}
