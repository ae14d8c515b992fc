package capture

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/weft-telemetry/weft/ingest/pcap"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Input is a file to read.
type Input struct {
	Path string
	// Switch is set if the file has only frames that this switch mirrored
	// without encapsulation; empty: reports.
	Switch string
}

// Ports identify the reports in a capture that is not a Weft recording.
type Ports map[source.Kind][]uint16

// Datagram is one report of a file.
type Datagram struct {
	Time     model.Time
	Kind     source.Kind
	From, To netip.AddrPort // without ports if the kind has none
	Switch   string         // with SPAN
	// Payload is the UDP payload; with ERSPAN the IP payload; with SPAN an
	// Ethernet frame if Frame is set, else an IP packet. Next reuses it.
	Payload []byte
	Frame   bool
}

// ReadStats are the counters of a Reader.
// Invariant: Packets = all of Kinds + Rejected, and Kinds[Other] = NotIP +
// Fragments + unrelated packets.
type ReadStats struct {
	Packets   uint64                 `json:"packets"`
	Kinds     map[source.Kind]uint64 `json:"kinds"`
	Rejected  uint64                 `json:"rejected"` // by the collector that recorded them
	NotIP     uint64                 `json:"not_ip"`
	Fragments uint64                 `json:"fragments"`
	Truncated uint64                 `json:"truncated"` // reports that the capture truncated
}

// Reader reads the reports of several files in the order of their times. It is
// for one goroutine.
type Reader struct {
	ports Ports
	files []*inputFile
	next  *inputFile // of the packet returned last
	stats ReadStats
	parse packet.Packet
	cut   []error
}

// inputFile is a file and its next packet.
type inputFile struct {
	Input
	file   *os.File
	reader *pcap.Reader
	packet pcap.Packet
	number int
}

// Open opens files, pcap or pcapng, also compressed by gzip. Close must follow.
func Open(ports Ports, inputs ...Input) (_ *Reader, err error) {
	r := &Reader{ports: ports, stats: ReadStats{Kinds: map[source.Kind]uint64{}}}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	for _, in := range inputs {
		f, err := os.Open(in.Path)
		if err != nil {
			return nil, err
		}
		s := &inputFile{Input: in, file: f}
		r.files = append(r.files, s)
		stream, err := decompress(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", in.Path, err)
		}
		if s.reader, err = pcap.NewReader(stream); err != nil {
			return nil, fmt.Errorf("read %s: %w", in.Path, err)
		}
		r.advance(s)
	}
	return r, nil
}

// decompress returns the content of a file that may be compressed by gzip, as Wireshark
// reads and writes captures.
func decompress(f *os.File) (io.Reader, error) {
	b := bufio.NewReaderSize(f, 64<<10)
	if magic, err := b.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil // too short for a capture, too, which its reader says
	}
	return gzip.NewReader(b)
}

// Close closes the open files.
func (r *Reader) Close() {
	for _, s := range r.files {
		s.file.Close()
	}
	r.files = nil
}

// Stats returns the current counters.
func (r *Reader) Stats() ReadStats { return r.stats }

// TruncatedFiles returns the errors of files that end early, for example because
// their writer was killed. Next has returned the packets before that.
func (r *Reader) TruncatedFiles() []error { return r.cut }

// Summary is the content of files and their time range.
type Summary struct {
	ReadStats
	From, To model.Time
	Broken   []error
}

// Summarize reads files to their end and returns their content.
func Summarize(ports Ports, inputs ...Input) (s Summary, err error) {
	r, err := Open(ports, inputs...)
	if err != nil {
		return s, err
	}
	defer r.Close()
	var d Datagram
	for {
		if err = r.Next(&d); err != nil {
			break
		}
		if s.From == 0 {
			s.From = d.Time
		}
		s.To = max(s.To, d.Time)
	}
	if err == io.EOF {
		err = nil
	}
	s.ReadStats, s.Broken = r.stats, r.cut
	return s, err
}

// advance reads the next packet of a file, and closes the file at its end.
func (r *Reader) advance(s *inputFile) {
	s.number++
	err := s.reader.Next(&s.packet)
	if err == nil {
		return
	}
	if err != io.EOF {
		r.cut = append(r.cut, fmt.Errorf("read %s: packet %d: %w", s.Path, s.number, err))
	}
	s.file.Close()
	r.files = slices.DeleteFunc(r.files, func(one *inputFile) bool { return one == s })
}

// Next reads the next report of any kind; it skips those that were rejected when
// they were recorded. At the end of all files the error is io.EOF.
func (r *Reader) Next(d *Datagram) error {
	for {
		if r.next != nil {
			r.advance(r.next)
			r.next = nil
		}
		if len(r.files) == 0 {
			return io.EOF
		}
		s := r.files[0]
		for _, one := range r.files[1:] {
			if one.packet.Time < s.packet.Time {
				s = one
			}
		}
		r.next = s
		rejected, err := r.classify(s, d)
		if err != nil {
			return fmt.Errorf("read %s: packet %d: %w", s.Path, s.number, err)
		}
		r.stats.Packets++
		if rejected {
			r.stats.Rejected++
			continue
		}
		r.stats.Kinds[d.Kind]++
		return nil
	}
}

// classify determines the kind and payload of a packet.
func (r *Reader) classify(s *inputFile, d *Datagram) (rejected bool, err error) {
	*d = Datagram{Time: s.packet.Time, Kind: source.Other}
	data, frame, err := s.packet.Network()
	if err != nil {
		return false, err
	}
	if s.Switch != "" {
		d.Kind, d.Switch, d.Payload, d.Frame = source.SPAN, s.Switch, data, frame
		return false, nil
	}
	p := &r.parse
	if frame {
		err = p.Parse(data)
	} else {
		err = p.ParseIP(data)
	}
	if err != nil || p.Depth == 0 {
		r.stats.NotIP++
		return false, nil
	}
	h := p.Innermost()
	if h.Flags.Has(packet.Fragment) {
		r.stats.Fragments++
		return false, nil
	}
	// Length is the claim of the header: there may be more bytes, or fewer.
	whole := int(h.Start) + int(h.Length)
	data = data[:min(len(data), whole)]
	kind, rejected := deviceKind(s.packet.Interface)
	switch {
	case h.Key.Proto == model.UDP && !h.Flags.Has(packet.NoPorts):
		d.Kind = r.byPort(h.Key.DstPort)
		if protoOf(kind) == model.UDP {
			d.Kind = kind
		}
		d.Payload = data[min(int(h.Payload), len(data)):]
	case h.Key.Proto != model.UDP:
		d.Kind, d.Payload = byProto(h.Key.Proto), data[min(int(h.Transport), len(data)):]
	}
	if d.Kind == source.Other {
		return false, nil
	}
	if len(data) < whole {
		r.stats.Truncated++
	}
	d.From = netip.AddrPortFrom(h.Key.Src.Netip(), h.Key.SrcPort)
	d.To = netip.AddrPortFrom(h.Key.Dst.Netip(), h.Key.DstPort)
	return rejected, nil
}

func (r *Reader) byPort(port uint16) source.Kind {
	for _, s := range sources.All() {
		if slices.Contains(r.ports[s.Kind], port) {
			return s.Kind
		}
	}
	return source.Other
}

// byProto is the source that a protocol without ports carries.
func byProto(p model.Proto) source.Kind {
	for _, s := range sources.All() {
		if s.Proto == p {
			return s.Kind
		}
	}
	return source.Other
}
