package capture

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/weft-telemetry/weft/ingest/pcap"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Input is a file to read.
type Input struct {
	Path string
	// Switch says that the file has nothing but frames that this switch
	// mirrored, as they were; empty: reports.
	Switch string
}

// Ports tell the reports of a capture that is no recording of ours.
type Ports struct{ DTA, INT []uint16 }

// Datagram is one report of a file.
type Datagram struct {
	Time     model.Time
	Kind     Kind
	From, To netip.AddrPort // without ports where the kind has none
	Switch   string         // of SPAN
	// Payload is UDP's; of ERSPAN what follows the IP header; of SPAN an
	// Ethernet frame, or what begins with an IP header unless Frame. It is
	// used again.
	Payload []byte
	Frame   bool
}

// ReadStats account for the packets of files.
// Invariant: Packets = all of Kinds + Rejected, and Kinds[Other] = NotIP +
// Fragments + what is of nobody.
type ReadStats struct {
	Packets   uint64           `json:"packets"`
	Kinds     [NumKinds]uint64 `json:"kinds"`
	Rejected  uint64           `json:"rejected"` // when they were recorded
	NotIP     uint64           `json:"not_ip"`
	Fragments uint64           `json:"fragments"`
	Truncated       uint64           `json:"cut"` // reports that the capture did not keep whole
}

// Reader reads the reports of several files in the order of their times. One
// goroutine uses it.
type Reader struct {
	ports Ports
	files []*source
	next  *source // whose packet was given out last
	stats ReadStats
	parse packet.Packet
	cut   []error
}

// source is a file and its next packet.
type source struct {
	Input
	file   *os.File
	reader *pcap.Reader
	packet pcap.Packet
	number int
}

// Open opens files, pcap or pcapng. Close must follow.
func Open(ports Ports, inputs ...Input) (_ *Reader, err error) {
	r := &Reader{ports: ports}
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
		s := &source{Input: in, file: f}
		r.files = append(r.files, s)
		if s.reader, err = pcap.NewReader(f); err != nil {
			return nil, fmt.Errorf("read %s: %w", in.Path, err)
		}
		r.advance(s)
	}
	return r, nil
}

// Close closes what is open.
func (r *Reader) Close() {
	for _, s := range r.files {
		s.file.Close()
	}
	r.files = nil
}

// Stats returns the present counts.
func (r *Reader) Stats() ReadStats { return r.stats }

// TruncatedFiles tells of files that break off, as one does whose writer was killed.
// What they have before that was given out.
func (r *Reader) TruncatedFiles() []error { return r.cut }

// Summary is what files have, and from when to when.
type Summary struct {
	ReadStats
	From, To model.Time
	Broken   []error
}

// Summarize reads files to their end to tell what they have.
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

// advance reads the next packet of a file. One that has ended is closed.
func (r *Reader) advance(s *source) {
	s.number++
	err := s.reader.Next(&s.packet)
	if err == nil {
		return
	}
	if err != io.EOF {
		r.cut = append(r.cut, fmt.Errorf("read %s: packet %d: %w", s.Path, s.number, err))
	}
	s.file.Close()
	r.files = slices.DeleteFunc(r.files, func(one *source) bool { return one == s })
}

// Next reads the next report, of whatever kind; those that were rejected when
// they were recorded are left out. At the end of all files the error is io.EOF.
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

// classify finds out what a packet is.
func (r *Reader) classify(s *source, d *Datagram) (rejected bool, err error) {
	*d = Datagram{Time: s.packet.Time}
	data, frame, err := s.packet.Network()
	if err != nil {
		return false, err
	}
	if s.Switch != "" {
		d.Kind, d.Switch, d.Payload, d.Frame = SPAN, s.Switch, data, frame
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
	// Length is the header's word: more may stand behind it, or less.
	whole := int(h.Start) + int(h.Length)
	data = data[:min(len(data), whole)]
	kind, rejected := deviceKind(s.packet.Interface)
	switch {
	case h.Key.Proto == model.UDP && !h.Flags.Has(packet.NoPorts):
		d.Kind = r.byPort(h.Key.DstPort)
		if kind == DTA || kind == INT {
			d.Kind = kind
		}
		d.Payload = data[min(int(h.Payload), len(data)):]
	case h.Key.Proto == model.GRE:
		d.Kind, d.Payload = ERSPAN, data[min(int(h.Transport), len(data)):]
	}
	if d.Kind == Other {
		return false, nil
	}
	if len(data) < whole {
		r.stats.Truncated++
	}
	d.From = netip.AddrPortFrom(h.Key.Src.Netip(), h.Key.SrcPort)
	d.To = netip.AddrPortFrom(h.Key.Dst.Netip(), h.Key.DstPort)
	return rejected, nil
}

func (r *Reader) byPort(port uint16) Kind {
	switch {
	case slices.Contains(r.ports.DTA, port):
		return DTA
	case slices.Contains(r.ports.INT, port):
		return INT
	}
	return Other
}
