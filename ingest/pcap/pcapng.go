package pcap

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/weft-telemetry/weft/model"
)

// Types of blocks that are read; others are skipped.
const (
	sectionHeader = 0x0a0d0d0a
	interfaceDesc = 1
	oldPacket     = 2
	simplePacket  = 3
	packetBlock   = 6
)

// Options of an interface.
const (
	optEnd        = 0
	optName       = 2
	optResolution = 9
	optOffset     = 14
)

// maxDevices limits the interfaces of a section, maxName the length of their
// names.
const (
	maxDevices = 1 << 16
	maxName    = 64
)

// nextPcapng reads blocks of a pcapng file up to the next packet.
func (p *Reader) nextPcapng(pkt *Packet) error {
	for {
		h, err := p.readBytes(8)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(h) == sectionHeader {
			magic, err := p.in.Peek(4)
			if err != nil {
				return fmt.Errorf("%w: it ends inside a section header", ErrCorrupt)
			}
			if p.order = binary.ByteOrder(binary.LittleEndian); magic[0] == 0x1a {
				p.order = binary.BigEndian
			}
			if p.order.Uint32(magic) != 0x1a2b3c4d {
				return fmt.Errorf("%w: section with byte-order magic %x", ErrCorrupt, magic)
			}
			p.devices = p.devices[:0]
		}
		kind, total := p.order.Uint32(h), p.order.Uint32(h[4:])
		if total < 12 || total%4 != 0 {
			return fmt.Errorf("%w: block of %d bytes", ErrCorrupt, total)
		}
		done, err := p.readBlock(pkt, kind, total-12)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
	}
}

// readBlock reads one block with size bytes between its two length fields.
func (p *Reader) readBlock(pkt *Packet, kind, size uint32) (done bool, err error) {
	switch kind {
	case interfaceDesc, oldPacket, simplePacket, packetBlock:
	default:
		if _, err := io.CopyN(io.Discard, p.in, int64(size)+4); err != nil {
			return false, fmt.Errorf("%w: it ends inside a block", ErrCorrupt)
		}
		return false, nil
	}
	if size > maxBlock {
		return false, fmt.Errorf("%w: block of %d bytes, want at most %d", ErrCorrupt, size, maxBlock)
	}
	b, err := p.readRequired(int(size) + 4)
	if err != nil {
		return false, err
	}
	if p.order.Uint32(b[size:]) != size+12 {
		return false, fmt.Errorf("%w: block of %d bytes with a trailing length of %d",
			ErrCorrupt, size+12, p.order.Uint32(b[size:]))
	}
	b = b[:size]
	switch kind {
	case interfaceDesc:
		return false, p.addInterface(b)
	case simplePacket:
		return true, p.readSimplePacket(pkt, b)
	}
	return true, p.readPacket(pkt, kind, b)
}

// addInterface reads an interface description.
func (p *Reader) addInterface(b []byte) error {
	if len(b) < 8 || len(p.devices) == maxDevices {
		return fmt.Errorf("%w: interface description of %d bytes, number %d", ErrCorrupt, len(b), len(p.devices)+1)
	}
	d := captureInterface{link: Link(p.order.Uint16(b)), snap: p.order.Uint32(b[4:]), perSec: 1e6}
	for b = b[8:]; len(b) >= 4; {
		code, n := p.order.Uint16(b), int(p.order.Uint16(b[2:]))
		b = b[4:]
		if code == optEnd || n > len(b) {
			break
		}
		switch {
		case code == optName:
			d.name = string(b[:min(n, maxName)])
		case code == optResolution && n == 1:
			d.perSec = resolution(b[0])
		case code == optOffset && n == 8:
			d.seconds = int64(p.order.Uint64(b))
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	p.devices = append(p.devices, d)
	return nil
}

// resolution is the number of ticks per second. Values beyond 64 bits become the
// maximum.
func resolution(v byte) uint64 {
	if v&0x80 != 0 {
		return 1 << min(v&0x7f, 63)
	}
	n := uint64(1)
	for range min(v, 19) {
		n *= 10
	}
	return n
}

// readPacket reads an enhanced or obsolete packet block.
func (p *Reader) readPacket(pkt *Packet, kind uint32, b []byte) error {
	if len(b) < 20 {
		return fmt.Errorf("%w: packet block of %d bytes", ErrCorrupt, len(b))
	}
	at := p.order.Uint32(b)
	if kind == oldPacket {
		at = uint32(p.order.Uint16(b))
	}
	if int64(at) >= int64(len(p.devices)) {
		return fmt.Errorf("%w: packet of interface %d of %d", ErrCorrupt, at, len(p.devices))
	}
	d := &p.devices[at]
	ticks := uint64(p.order.Uint32(b[4:]))<<32 | uint64(p.order.Uint32(b[8:]))
	n := p.order.Uint32(b[12:])
	if int64(n) > int64(len(b)-20) || n > MaxPacket {
		return fmt.Errorf("%w: packet of %d bytes in a block of %d", ErrCorrupt, n, len(b))
	}
	*pkt = Packet{Time: nanoseconds(ticks, d.perSec), Link: d.link, Data: b[20 : 20+n : 20+n], Length: int(p.order.Uint32(b[16:])), Interface: d.name}
	if s := d.seconds; s > -9e9 && s < 9e9 { // the range of nanoseconds
		pkt.Time += model.Time(s * 1e9)
	}
	return nil
}

// readSimplePacket reads a simple packet block: no time, the first interface.
func (p *Reader) readSimplePacket(pkt *Packet, b []byte) error {
	if len(b) < 4 || len(p.devices) == 0 {
		return fmt.Errorf("%w: simple packet block of %d bytes, %d interfaces", ErrCorrupt, len(b), len(p.devices))
	}
	d, n := &p.devices[0], p.order.Uint32(b)
	data := b[4:]
	if d.snap > 0 {
		data = data[:min(int64(d.snap), int64(len(data)))]
	}
	data = data[:min(int64(n), int64(len(data)), MaxPacket)]
	*pkt = Packet{Link: d.link, Data: data, Length: int(n), Interface: d.name}
	return nil
}
