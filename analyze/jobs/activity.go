package jobs

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

const (
	// MaxFlows bounds the flows that are compared with each other: the largest.
	MaxFlows = 4096
	// minPacket is the mean packet size below which a flow has no data: acknowledgements
	// of RoCEv2 and TCP are 64 to 120 bytes.
	minPacket = 128 // bytes
)

// Activity is what each flow sent over a range, by slot.
type Activity struct {
	From    time.Time
	Slot    time.Duration
	Slots   int
	Omitted int // flows beyond MaxFlows
	flows   []*flow
}

// flow is a flow with data between two hosts of the fabric.
type flow struct {
	key      model.FlowKey
	src, dst string
	bytes    uint64
	packets  uint64
	points   []point // in order of time, one per slot
	path     []string
	pathAt   time.Time
}

// point is what a flow sent in one slot.
type point struct {
	slot  int
	bytes uint64
}

// NewActivity adds up records of flows. Those of a slot longer than the shortest count at
// its start.
func NewActivity(records []record.FlowSlot) *Activity {
	a := &Activity{}
	var last time.Time
	for i := range records {
		r := &records[i]
		if a.Slot == 0 || r.Slot > 0 && r.Slot < a.Slot {
			a.Slot = r.Slot
		}
		if i == 0 || r.Time.Before(a.From) {
			a.From = r.Time
		}
		if r.Time.After(last) {
			last = r.Time
		}
	}
	if a.Slot <= 0 {
		return a
	}
	a.Slots = int(last.Sub(a.From)/a.Slot) + 1
	index := map[model.FlowKey]*flow{}
	for i := range records {
		r := &records[i]
		if r.Src == "" || r.Dst == "" || r.Src == r.Dst || r.Packets == 0 {
			continue
		}
		f := index[r.Flow]
		if f == nil {
			f = &flow{key: r.Flow, src: r.Src, dst: r.Dst}
			index[r.Flow] = f
			a.flows = append(a.flows, f)
		}
		f.add(int(r.Time.Sub(a.From)/a.Slot), r)
	}
	a.flows = slices.DeleteFunc(a.flows, func(f *flow) bool { return f.bytes < minPacket*f.packets })
	slices.SortFunc(a.flows, func(x, y *flow) int { return cmp.Or(cmp.Compare(y.bytes, x.bytes), x.key.Compare(y.key)) })
	if a.Omitted = max(len(a.flows)-MaxFlows, 0); a.Omitted > 0 {
		a.flows = a.flows[:MaxFlows]
	}
	for _, f := range a.flows {
		f.order()
	}
	return a
}

func (f *flow) add(slot int, r *record.FlowSlot) {
	f.bytes, f.packets = f.bytes+r.Bytes, f.packets+r.Packets
	if r.Bytes >= minPacket*r.Packets { // else it only acknowledged what the other end sent
		f.points = append(f.points, point{slot, r.Bytes})
	}
	if len(r.Path) < len(f.path) || r.Time.Before(f.pathAt) {
		return
	}
	f.pathAt, f.path = r.Time, f.path[:0]
	for _, h := range r.Path {
		f.path = append(f.path, h.Switch)
	}
}

// order sorts the points by time and joins those of one slot. Slots with less than a
// hundredth of the usual bytes are silent: retransmissions, and the last packet of a message
// whose others were a slot earlier.
func (f *flow) order() {
	slices.SortFunc(f.points, func(x, y point) int { return cmp.Compare(x.slot, y.slot) })
	n := 0
	for _, p := range f.points {
		if n > 0 && f.points[n-1].slot == p.slot {
			f.points[n-1].bytes += p.bytes
			continue
		}
		f.points[n] = p
		n++
	}
	f.points = f.points[:n]
	quiet := f.bytes / uint64(max(n, 1)) / 100
	f.points = slices.DeleteFunc(f.points, func(p point) bool { return p.bytes <= quiet })
}

// time is the start of a slot.
func (a *Activity) time(slot int) time.Time { return a.From.Add(time.Duration(slot) * a.Slot) }
