package serve

import (
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Stream carries the decoded reports of other sources from their sockets to the
// controller's goroutine. It copies them and never blocks: sockets must not wait
// for analyses. The service does not close it.
type Stream interface {
	Publish(key uint64, m stream.Message) error
	Subscribe(partitions ...int) (stream.Subscription, error)
	Stats() stream.Stats
}

// streamSource is both ends of a stream of reports in Weft's format, as they
// would have been appended to a list.
type streamSource struct {
	stream Stream
	sub    stream.Subscription
	lists  control.ListPlan
}

func newStreamSource(s Stream, lists control.ListPlan) (*streamSource, error) {
	if s == nil {
		return nil, errors.New("serve: no stream for INT reports and ERSPAN mirrors, want one")
	}
	sub, err := s.Subscribe()
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return &streamSource{s, sub, lists}, nil
}

// publish publishes a report. The stream counts what it discards.
func (f *streamSource) publish(at model.Time, list dta.ListID, data []byte) {
	_ = f.stream.Publish(f.key(list, data), stream.Message{At: at, Kind: uint32(list), Data: data})
}

// key is what stays in order: mirrors of a flow, as the lists of switches have
// them, and labels of a switch.
func (f *streamSource) key(list dta.ListID, data []byte) uint64 {
	if f.lists.Labels.Contains(list) {
		var e label.Export
		_, _ = e.Parse(data) // ours
		return uint64(e.Switch)
	}
	var m mirror.Mirror
	var p packet.Packet
	if _, err := m.Parse(data); err != nil || p.Parse(m.Frame) != nil || p.Depth == 0 {
		return uint64(m.Switch) // a packet of no flow
	}
	return p.Innermost().Key.Hash(0)
}

// poll hands over what waits.
func (f *streamSource) poll(to func(at model.Time, list dta.ListID, data []byte)) {
	// That a stream has ended, or cannot be read, does not end the service.
	_, _ = f.sub.Poll(func(m stream.Message) { to(m.At, dta.ListID(m.Kind), m.Data) })
	_ = f.sub.Ack()
}

func (f *streamSource) close() error { return f.sub.Close() }
