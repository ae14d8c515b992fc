package api

import (
	"bytes"
	"fmt"

	"github.com/weft-telemetry/weft/control/tracepcap"
	"github.com/weft-telemetry/weft/model/record"
)

// encodePcapng returns a trace as a pcapng file with one frame per hop.
func encodePcapng(t *record.Trace) ([]byte, error) {
	if len(t.Frame) == 0 {
		return nil, fmt.Errorf("trace %d: the packet's bytes were not stored: %w", t.ID, ErrNotFound)
	}
	if len(t.Hops) == 0 {
		return nil, fmt.Errorf("trace %d: no hop was stored: %w", t.ID, ErrNotFound)
	}
	var b bytes.Buffer
	w := tracepcap.NewWriter(&b, fmt.Sprintf("%s; mirrored because: %s; end: %s", t.Flow, t.Why, t.End))
	if err := w.Write(t); err != nil {
		return nil, err
	}
	err := w.Flush()
	return b.Bytes(), err
}
