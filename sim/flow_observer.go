package sim

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// FlowObserver observes the RDMA flows that a host sends, as its NIC does. It
// may have the host send packets, and must not change anything else. Keys
// belong to the flows: they may be read, not kept.
type FlowObserver interface {
	Started(now model.Time, f *FlowInfo)
	Sent(now model.Time, key *model.FlowKey, end int64)  // up to this byte of the flow
	Acked(now model.Time, key *model.FlowKey, end int64) // all up to this byte
	Ended(now model.Time, key *model.FlowKey)
}

// FlowInfo is what is known of a flow when it starts.
type FlowInfo struct {
	Key     model.FlowKey
	BaseRTT time.Duration // of a full packet and its acknowledgement in an empty fabric
	Rate    model.Rate    // of its host's port, or its limit
	Ideal   time.Duration // to completion in an empty fabric; 0 for a flow without a size
}

// ObserveFlows sets the observer of the flows that a host sends, nil for none,
// from the next event on.
func (h *Host) ObserveFlows(w FlowObserver) {
	h.flowObserver = w
	if w != nil && !isNodeLocal(w) {
		h.net.pin(h.node)
	}
}

// notifyStart reports a flow to the observer.
func (f *flow) notifyStart() {
	n := f.net
	_, rtt := n.baseWindow(f)
	w := FlowInfo{Key: f.key, BaseRTT: rtt.Duration(), Rate: f.rate}
	if f.spec.Stop == 0 {
		w.Ideal = f.ideal.Duration()
	}
	f.src.flowObserver.Started(f.src.Clock(), &w)
}

// EgressPort returns the port by which the host sends a flow's packets.
func (h *Host) EgressPort(key model.FlowKey) *Port { return h.net.egressPortOrFirst(h, key) }
