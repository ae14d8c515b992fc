package trace

import (
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Record returns the trace as it is stored and shown, with the fabric's names.
// It shares nothing with t.
func (t *Trace) Record(f *topo.Fabric) record.Trace {
	r := record.Trace{
		Time: wallClock(t.First), Flow: t.Key, End: t.End.String(), Why: t.Why.String(), LostMirrors: t.MirrorsLost,
		Hops: make([]record.TraceHop, len(t.Hops)), Frame: append([]byte(nil), t.Frame...),
	}
	r.Latency, _ = t.Latency()
	for i := range t.Hops {
		h := &t.Hops[i]
		if i == 0 {
			r.Time = wallClock(h.Time)
		}
		r.Hops[i] = record.TraceHop{
			Time: wallClock(h.Time), Switch: nameOf(f, h.Switch), In: h.In, Out: h.Out,
			TTL: h.TTL, DSCP: h.TOS >> 2, ECN: h.TOS & 3, Depth: h.Depth,
		}
	}
	r.ID = t.RecordID(r.Time)
	return r
}

// RecordID identifies the record of a trace: by what distinguishes its packet from others,
// and by the time at its first hop. A packet that is sent again may be equal to the byte, as
// RoCE's are, which have no IPv4 identification, and those of PFC, which have no addresses.
func (t *Trace) RecordID(first time.Time) uint64 { return mix(t.hash(), uint64(first.UnixNano())) }

func wallClock(t model.Time) time.Time { return time.Unix(0, int64(t)).UTC() }

// nameOf returns a node's name, or its number if the fabric does not have it.
func nameOf(f *topo.Fabric, id model.NodeID) string {
	if f.HasNode(id) {
		return f.Node(id).Name
	}
	return "node " + strconv.FormatUint(uint64(id), 10)
}
