package erspan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// File decodes a capture file, pcap or pcapng. Emit gets each mirror and when it
// was captured, and must not keep it.
func (d *Decoder) File(path string, emit func(at model.Time, m *mirror.Mirror)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.Capture(f, emit); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// magicNg begins every pcapng file.
const magicNg = 0x0a0d0d0a

// source is what both readers of pcapgo are.
type source interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

// Capture decodes what File reads. What goes before an error has been emitted.
func (d *Decoder) Capture(r io.Reader, emit func(at model.Time, m *mirror.Mirror)) error {
	in := bufio.NewReaderSize(r, 1<<16)
	magic, err := in.Peek(4)
	if err != nil {
		return fmt.Errorf("read a capture file: %w", errors.Join(errShort, err))
	}
	var from source
	var link func(i int) layers.LinkType
	if binary.BigEndian.Uint32(magic) == magicNg {
		ng, err := pcapgo.NewNgReader(in, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			return fmt.Errorf("read a pcapng file: %w", err)
		}
		from = ng
		link = func(i int) layers.LinkType {
			of, err := ng.Interface(i)
			if err != nil {
				return layers.LinkTypeNull
			}
			return of.LinkType
		}
	} else {
		old, err := pcapgo.NewReader(in)
		if err != nil {
			return fmt.Errorf("read a pcap file: %w", err)
		}
		from, link = old, func(int) layers.LinkType { return old.LinkType() }
	}
	var at model.Time
	out := func(m *mirror.Mirror) { emit(at, m) }
	for n := 1; ; n++ {
		data, info, err := from.ZeroCopyReadPacketData()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("packet %d: %w", n, err)
		}
		at = model.TimeOf(info.Timestamp)
		if err := d.link(at, link(info.InterfaceIndex), data, out); err != nil {
			return fmt.Errorf("packet %d: %w", n, err)
		}
	}
}

var errShort = errors.New("the file is too short")

// sllSize is the length of the header that Linux puts before packets captured
// on all interfaces.
const sllSize = 16

// link decodes one captured packet by the link that it was captured on.
func (d *Decoder) link(at model.Time, t layers.LinkType, b []byte, emit func(*mirror.Mirror)) error {
	switch t {
	case layers.LinkTypeEthernet:
		d.Frame(at, b, emit)
	case layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6, 12: // 12: raw IP on BSD
		d.IP(at, b, emit)
	case layers.LinkTypeLinuxSLL:
		if len(b) < sllSize {
			d.stats.Packets++
			d.stats.NotIP++
			return nil
		}
		d.IP(at, b[sllSize:], emit)
	default:
		return fmt.Errorf("captured on a link of type %v, want Ethernet, raw IP or Linux's cooked form", t)
	}
	return nil
}
