// Package pcap reads capture files, pcap and pcapng, packet by packet. Files are
// untrusted, so memory is bounded for any lengths they claim. The package does not
// interpret packets.
package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// Link is the link type of captured packets, with the numbers of tcpdump.org.
type Link uint16

// Link types that Weft supports.
const (
	Ethernet Link = 1
	RawBSD   Link = 12 // IP, the number on some BSD systems
	Raw      Link = 101
	Cooked   Link = 113 // Linux, all interfaces
	IPv4     Link = 228
	IPv6     Link = 229
)

// MaxPacket is the maximum length of a packet, the same as tcpdump's.
const MaxPacket = 1 << 18

// maxBlock is the maximum length of a pcapng block: a packet with its options.
const maxBlock = MaxPacket + 1<<16

// Errors of both formats.
var (
	ErrFormat  = errors.New("neither pcap nor pcapng")
	ErrCorrupt = errors.New("corrupt file")
)

// Packet is a captured packet. Next reuses Data.
type Packet struct {
	Time      model.Time
	Link      Link
	Data      []byte
	Length    int    // before truncation by the capture
	Interface string // name of the interface, if the file has it
}

// cookedSize is the length of the Linux cooked header, for packets captured on all
// interfaces.
const cookedSize = 16

// Network returns the packet by its link type: an Ethernet frame, or an IP packet.
// Other link types are an error.
func (p *Packet) Network() (data []byte, frame bool, err error) {
	switch p.Link {
	case Ethernet:
		return p.Data, true, nil
	case Raw, RawBSD, IPv4, IPv6:
		return p.Data, false, nil
	case Cooked:
		return p.Data[min(cookedSize, len(p.Data)):], false, nil
	}
	return nil, false, fmt.Errorf("link type %d, want Ethernet, raw IP or Linux cooked capture", p.Link)
}

// Reader reads one file.
type Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	buf   []byte
	next  func(*Packet) error

	// pcap.
	link  Link
	scale uint64 // ticks per second
	// pcapng.
	devices []captureInterface
}

// captureInterface is an interface of a pcapng section.
type captureInterface struct {
	link    Link
	perSec  uint64 // ticks
	snap    uint32 // snapshot length; 0: no limit
	seconds int64  // time offset
	name    string
}

// NewReader detects the format of a file.
func NewReader(r io.Reader) (*Reader, error) {
	p := &Reader{in: bufio.NewReaderSize(r, 1<<16)}
	head, err := p.in.Peek(4)
	if err == io.EOF {
		return nil, fmt.Errorf("%w: too short", ErrFormat)
	} else if err != nil {
		return nil, err // of a directory, for example
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(head) {
		case 0xa1b2c3d4:
			p.order, p.scale = order, 1e6
		case 0xa1b23c4d:
			p.order, p.scale = order, 1e9
		case sectionHeader: // a palindrome in both byte orders
			p.next = p.nextPcapng
			return p, nil
		}
	}
	if p.order == nil {
		return nil, fmt.Errorf("%w: magic number %x", ErrFormat, head)
	}
	b, err := p.readBytes(24)
	if err != nil {
		return nil, err
	}
	p.link, p.next = Link(p.order.Uint32(b[20:])), p.nextPcap // the upper half is about the frame check sequence
	return p, nil
}

// Next reads a packet. At the end of the file the error is io.EOF.
func (p *Reader) Next(pkt *Packet) error { return p.next(pkt) }

// readBytes reads n bytes, which are valid until the next call.
func (p *Reader) readBytes(n int) ([]byte, error) {
	if cap(p.buf) < n {
		p.buf = make([]byte, n, n+n/2)
	}
	b := p.buf[:n]
	if m, err := io.ReadFull(p.in, b); err != nil {
		if err == io.EOF {
			return nil, err
		}
		return nil, fmt.Errorf("%w: it ends after %d of %d bytes", ErrCorrupt, m, n)
	}
	return b, nil
}

// readRequired is readBytes where the file must not end.
func (p *Reader) readRequired(n int) ([]byte, error) {
	b, err := p.readBytes(n)
	if err == io.EOF {
		err = fmt.Errorf("%w: it ends where %d more bytes are required", ErrCorrupt, n)
	}
	return b, err
}

// nextPcap reads the next packet of a pcap file.
func (p *Reader) nextPcap(pkt *Packet) error {
	h, err := p.readBytes(16)
	if err != nil {
		return err
	}
	sec, frac, n := p.order.Uint32(h), p.order.Uint32(h[4:]), p.order.Uint32(h[8:])
	*pkt = Packet{Time: model.Time(sec)*1e9 + nanoseconds(uint64(frac), p.scale), Link: p.link, Length: int(p.order.Uint32(h[12:]))}
	if n > MaxPacket {
		return fmt.Errorf("%w: packet of %d bytes, want at most %d", ErrCorrupt, n, MaxPacket)
	}
	pkt.Data, err = p.readRequired(int(n))
	return err
}

// nanoseconds converts ticks; values out of range become the maximum time.
func nanoseconds(ticks, perSecond uint64) model.Time {
	hi, lo := bits.Mul64(ticks, 1e9)
	if hi >= perSecond {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, perSecond)
	return model.Time(min(ns, math.MaxInt64))
}
