// Package capture writes datagrams that were received into a capture file, from
// which ingest/pcap reads them. What they mean is left to others.
package capture

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Writer writes datagrams into a pcapng file, as packets that begin with their IP
// header. A socket does not show that header: addresses and ports are those of
// the datagram, the rest is made up. Many goroutines may use it.
type Writer struct {
	mu     sync.Mutex
	file   *os.File
	buf    *bufio.Writer
	out    *pcapgo.NgWriter
	packet []byte
	err    error // the first; nothing is written after it
	lost   uint64
}

// Create makes a file, or empties one that is there.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{file: f, buf: bufio.NewWriterSize(f, 1<<16)}
	if w.out, err = pcapgo.NewNgWriter(w.buf, layers.LinkTypeRaw); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return w, nil
}

// Datagram writes what came from an address at an instant. After an error, of
// which Close tells, datagrams are counted as lost.
func (w *Writer) Datagram(at model.Time, from, to netip.AddrPort, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		w.lost++
		return
	}
	w.packet = appendUDP(w.packet[:0], from, to, payload)
	w.err = w.out.WritePacket(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, int64(at)), CaptureLength: len(w.packet), Length: len(w.packet),
	}, w.packet)
	if w.err != nil {
		w.lost++
	}
}

// Close writes what is left and closes the file. It returns the first error, and
// how many datagrams it cost.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	if err != nil {
		err = fmt.Errorf("record datagrams, %d lost: %w", w.lost, err)
	} else {
		err = errors.Join(w.out.Flush(), w.buf.Flush())
	}
	return errors.Join(err, w.file.Close())
}

const hopLimit = 64

// appendUDP appends an IP packet. Its UDP checksum is 0, which is none.
func appendUDP(b []byte, from, to netip.AddrPort, payload []byte) []byte {
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	length := packet.UDPSize + len(payload)
	if src.Is4() && dst.Is4() {
		h := packet.IPv4{Proto: model.UDP, TTL: hopLimit, Src: model.AddrOf(src).V4(), Dst: model.AddrOf(dst).V4(), Length: uint16(packet.IPv4Size + length)}
		h.Checksum = h.Sum()
		b = h.AppendTo(b)
	} else {
		h := packet.IPv6{NextHeader: model.UDP, HopLimit: hopLimit, Src: model.AddrOf(src), Dst: model.AddrOf(dst), Length: uint16(length)}
		b = h.AppendTo(b)
	}
	b = packet.UDP{SrcPort: from.Port(), DstPort: to.Port(), Length: uint16(length)}.AppendTo(b)
	return append(b, payload...)
}
