package traffic

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Bounds of a list. A generator that would exceed one returns an error before
// it allocates.
const (
	// MaxFlows is the maximum number of flows in a list: 2 GB of memory, and
	// more than a packet-level run can simulate.
	MaxFlows = 1 << 24
	// MaxAfter is the maximum number of dependencies in a list.
	MaxAfter = 1 << 25
	// MaxTime ends every run: sim counts it in picoseconds without overflow,
	// and model.Time still prints it as a time of a run.
	MaxTime model.Time = 1e15
	// MaxBytes is the largest payload of a flow.
	MaxBytes model.Bytes = 1e15
	// maxRate keeps products of rates and times far from overflow.
	maxRate = 1000 * model.Tbps
)

// Transport carries a flow.
type Transport uint8

// Transports. The zero Transport is RDMA.
const (
	RDMA Transport = iota // RoCEv2, reliable connection
	TCP
	UDP // nothing is acknowledged or retransmitted
)

var transportNames = [...]string{RDMA: "rdma", TCP: "tcp", UDP: "udp"}

// String prints the transport's name.
func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return fmt.Sprintf("transport(%d)", uint8(t))
}

// ParseTransport reads a transport's name.
func ParseTransport(s string) (Transport, error) {
	for t, name := range transportNames {
		if strings.EqualFold(s, name) {
			return Transport(t), nil
		}
	}
	return 0, fmt.Errorf("transport %q, want one of %s", s, strings.Join(transportNames[:], ", "))
}

// MarshalText writes String's form.
func (t Transport) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTransport reads.
func (t *Transport) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTransport(string(b))
	return err
}

// Flow is one message from one host to another, or a computation of a host: a
// flow whose Src and Dst are the same host, without Bytes and Stop. A computation
// sends nothing. It is there so that messages wait for it, and it for messages.
//
// Flows with the same hosts, transport and family and the same SrcPort, not
// zero, share a 5-tuple: they are messages of one connection. Generators of
// such flows make each wait for the one before (After), so that no two of them
// run at once. A port that the simulator chooses must differ from those.
type Flow struct {
	Src, Dst model.NodeID

	// From and To are addresses other than the hosts'; zero: the hosts'. They
	// are for the outside world, a virtual address, or one that migrates. Src
	// must own From. The responder for To depends on routes and muxes, so the
	// simulator finds it: Dst is not read. They determine the family, whatever
	// V6 says.
	From, To model.Addr

	// Start is when the flow starts; with After: not before this.
	Start model.Time
	// Stop ends a flow without a size; 0 with Bytes set.
	Stop model.Time
	// Bytes is the payload; 0 with Stop set: the flow sends until Stop.
	Bytes model.Bytes
	// Rate limits the pace; 0: line rate, or the rate of congestion control.
	Rate model.Rate

	SrcPort, DstPort uint16 // 0: the simulator chooses
	Priority         model.Priority
	Transport        Transport
	V6               bool
	NoCC             bool // RDMA without congestion control

	// Group is the collective, incast or query of the flow; 0: none. A group is
	// complete when all its flows have finished.
	Group int

	// After lists flows, as indexes of the same list, that must have finished
	// before this one starts, as far as Src can know: a flow that Src received
	// has finished when its last byte arrived, any other when its last byte was
	// acknowledged (UDP: sent). A flow with a Stop has finished at its Stop.
	// Flows may share the slice: it is never written to.
	After []int
	// Delay passes between the last of After and the start.
	Delay time.Duration

	// Queue is a send queue of Src; 0: none. Flows of one queue send one after
	// the other, in the order in which they become ready: a flow starts when the
	// one before it has sent its last byte.
	Queue uint32

	// Compute is how long a computation takes, if nothing slows its host. Those
	// of one Core of a host run one at a time, in the order in which they become
	// ready; at equal times by index.
	Compute time.Duration
	Core    uint8
}

// IsComputation reports whether the flow is a computation.
func (f *Flow) IsComputation() bool {
	return f.Src == f.Dst && f.Bytes == 0 && f.Stop == 0 && f.To == model.Addr{}
}

// Class is what all flows of one generator have in common. The fields are
// those of Flow.
type Class struct {
	Priority  model.Priority
	Transport Transport
	DstPort   uint16
	V6        bool
	Rate      model.Rate
	NoCC      bool
}

// DefaultClass returns RDMA with congestion control on priority 3, the lossless
// class of most RoCEv2 fabrics.
func DefaultClass() Class { return Class{Priority: 3} }

func (c Class) check() error {
	switch {
	case c.Priority > 7:
		return fmt.Errorf("priority %d, want 0 to 7", c.Priority)
	case int(c.Transport) >= len(transportNames):
		return fmt.Errorf("transport %d, want one of %s", c.Transport, strings.Join(transportNames[:], ", "))
	case c.Rate < 0 || c.Rate > maxRate:
		return fmt.Errorf("rate %v, want 0 to %v", c.Rate, maxRate)
	case c.NoCC && c.Transport != RDMA:
		return fmt.Errorf("transport %v without congestion control, want rdma", c.Transport)
	}
	return nil
}

// flow returns a flow of the class.
func (c Class) flow(src, dst model.NodeID, start model.Time, size model.Bytes) Flow {
	return Flow{
		Src: src, Dst: dst, Start: start, Bytes: size, Rate: c.Rate,
		DstPort: c.DstPort, Priority: c.Priority, Transport: c.Transport, V6: c.V6, NoCC: c.NoCC,
	}
}

func (f *Flow) class() Class {
	return Class{f.Priority, f.Transport, f.DstPort, f.V6, f.Rate, f.NoCC}
}
