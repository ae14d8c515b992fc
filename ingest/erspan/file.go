package erspan

import (
	"fmt"
	"io"
	"os"

	"github.com/weft-telemetry/weft/ingest/pcap"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// DecodeFile decodes a capture file, pcap or pcapng. It calls emit with each
// mirror and its capture time; emit must not keep the mirror.
func (d *Decoder) DecodeFile(path string, emit func(at model.Time, m *mirror.Mirror)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.DecodeCapture(f, emit); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// DecodeCapture is DecodeFile for a reader. Mirrors before an error have been
// emitted.
func (d *Decoder) DecodeCapture(r io.Reader, emit func(at model.Time, m *mirror.Mirror)) error {
	in, err := pcap.NewReader(r)
	if err != nil {
		return err
	}
	var p pcap.Packet
	out := func(m *mirror.Mirror) { emit(p.Time, m) }
	for n := 1; ; n++ {
		err := in.Next(&p)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = d.decodeCaptured(&p, out)
		}
		if err != nil {
			return fmt.Errorf("packet %d: %w", n, err)
		}
	}
}

// decodeCaptured decodes a packet by its link type.
func (d *Decoder) decodeCaptured(p *pcap.Packet, emit func(*mirror.Mirror)) error {
	data, frame, err := p.Network()
	switch {
	case err != nil:
		return err
	case frame:
		d.DecodeFrame(p.Time, data, emit)
	default:
		d.DecodeIP(p.Time, data, emit)
	}
	return nil
}
