package capture

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Writer writes a recording as fast as its caller, who waits for the disk: nothing
// is shed. A Recorder is for sockets, which must not wait.
type Writer struct {
	path      string
	file      *file
	datagrams uint64
}

// NewWriter makes a file. An existing one is archived, as a Recorder does. Close
// must follow.
func NewWriter(path string) (*Writer, error) {
	f, err := create(&Config{Path: path}, openPrivate, 0)
	if err != nil {
		return nil, fmt.Errorf("record reports: %w", err)
	}
	return &Writer{path: path, file: f}, nil
}

// WriteDatagram writes a datagram that a collector accepted.
func (w *Writer) WriteDatagram(k source.Kind, at model.Time, from, to netip.AddrPort, payload []byte) error {
	if len(payload) > maxPayload {
		return fmt.Errorf("record reports in %s: a datagram of %d bytes, want at most %d", w.path, len(payload), maxPayload)
	}
	if err := w.file.writePacket(&entry{at: at, kind: k, from: from, to: to}, payload); err != nil {
		return fmt.Errorf("record reports in %s: %w", w.path, err)
	}
	w.datagrams++
	return nil
}

// Datagrams is how many were written.
func (w *Writer) Datagrams() uint64 { return w.datagrams }

// Bytes is about the size of the file.
func (w *Writer) Bytes() model.Bytes { return model.Bytes(w.file.size) }

// Close writes what waits, and closes the file.
func (w *Writer) Close() error {
	if err := w.file.close(); err != nil {
		return fmt.Errorf("record reports in %s: %w", w.path, err)
	}
	return nil
}
