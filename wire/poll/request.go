package poll

import (
	"encoding/binary"
	"errors"
	"time"
)

// Request is what a host reports to a collector when it polls about a flow: the packet
// that it sent, and what it measured.
type Request struct {
	Poll
	// Measured is the latency of the late packet, or its age so far if it is InFlight.
	// If OfFlow is set, no packet was measured, and it is how long the flow has been slow.
	Measured   time.Duration
	OfFlow     bool
	InFlight   bool
	HostPaused bool // the port of the host's NIC was paused
}

// ErrMeasurement is returned when what follows the packet is no measurement.
var ErrMeasurement = errors.New("poll: a request ends with neither a measurement nor the packet")

// measurementSize is the length of what follows the packet.
const measurementSize = 12

const (
	ofFlow = 1 << iota
	inFlight
	hostPaused
)

// AppendTo appends the encoded request. A negative Measured is 0.
func (r Request) AppendTo(b []byte) []byte {
	var flags byte
	if r.OfFlow {
		flags |= ofFlow
	}
	if r.InFlight {
		flags |= inFlight
	}
	if r.HostPaused {
		flags |= hostPaused
	}
	b = append(r.Poll.AppendTo(b), flags, 0, 0, 0)
	return binary.BigEndian.AppendUint64(b, uint64(max(r.Measured, 0)))
}

// Parse decodes a whole request. One that is the packet alone has no measurement.
func (r *Request) Parse(b []byte) (int, error) {
	*r = Request{}
	n, err := r.Poll.Parse(b)
	if err != nil || n == len(b) {
		return n, err
	}
	m := b[n:]
	if len(m) != measurementSize || m[0] >= hostPaused<<1 || m[1]|m[2]|m[3] != 0 || m[4] >= 1<<7 {
		return n, ErrMeasurement
	}
	r.OfFlow, r.InFlight, r.HostPaused = m[0]&ofFlow != 0, m[0]&inFlight != 0, m[0]&hostPaused != 0
	r.Measured = time.Duration(binary.BigEndian.Uint64(m[4:]))
	return len(b), nil
}
