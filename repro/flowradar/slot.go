package flowradar

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weft-telemetry/weft/analyze/flows"
	switchflowset "github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// slot is the exports of all switches of a load, and their true contents.
type slot struct {
	sets []*flows.Flowset
	want []contents // by switch
}

// contents is the truth about a switch's flowset: the number of its flows and the
// sums of their digests, without and with packets.
type contents struct {
	flows         int
	keys, counted uint64
	hidden        int // flows that the filter mistook for known ones
}

// narrowCells is the cell that memory is computed for: as large as the paper
// prototype's, with 13 bytes of key, one of flow count, two of packet count, one for
// each port.
var narrowCells = switchflowset.NarrowLayout4

// encode has every switch count the load in a flowset of this geometry, each with
// its own seeds, and assembles the exports as a collector does.
func (l *load) encode(ctx context.Context, g sketch.Geometry, seed uint64) (*slot, error) {
	s := &slot{sets: make([]*flows.Flowset, len(l.switches)), want: make([]contents, len(l.switches))}
	err := parallel(ctx, len(l.switches), func(i int) (err error) {
		s.sets[i], s.want[i], err = l.switchSet(i, g, digestOf(seed, uint64(i)))
		return err
	})
	return s, err
}

func (l *load) switchSet(i int, g sketch.Geometry, seed uint64) (*flows.Flowset, contents, error) {
	return countedFlowset(l.switches[i], g, seed, func(yield func(*model.FlowKey, uint32) bool) {
		for _, at := range l.at[i] {
			if f := &l.flows[at]; !yield(&f.key, l.packetsAt(f, i)) {
				return
			}
		}
	})
}

// countedFlowset returns the flowset of a switch that has seen some flows, with
// the given packets of each.
func countedFlowset(sw model.NodeID, g sketch.Geometry, seed uint64,
	list iter.Seq2[*model.FlowKey, uint32],
) (*flows.Flowset, contents, error) {
	var want contents
	set, err := sketch.NewSet[sketch.Key4](g, seed)
	if err != nil {
		return nil, want, err
	}
	counts := flowset.Counts{}
	for k, packets := range list {
		key := sketch.Pack4(k)
		for j := range packets {
			if h, fresh := set.AddPacket(&key, 1000); fresh {
				set.InsertFlow(&key, h, model.PortID(1+key[0]%64), model.PortID(1+key[1]%64))
			} else if j == 0 {
				want.hidden++
			}
		}
		counts.Packets += uint64(packets)
		want.flows++
		want.keys += digest(&key, 0)
		want.counted += digest(&key, uint64(packets))
	}
	counts.Bytes, counts.Flows = 1000*counts.Packets, set.Inserted()
	fs, err := exported(&flowset.Header{
		Switch: sw, Seed: seed, Slot: 1, Start: model.Time(slotLength), Length: slotLength,
		Geometry: flowset.Geometry(g), Layout: narrowCells, Counts: counts,
	}, set)
	return fs, want, err
}

// usuallyInFlight is the percentage of flows at a switch that have a packet more or less
// than at other switches, because it was in flight when the slot started or ended.
const usuallyInFlight = 2

// packetsAt returns how many packets of a flow a switch counted in the slot.
func (l *load) packetsAt(f *flow, sw int) uint32 {
	d := digestOf(f.key.Hash(0), uint64(sw))
	if l.unrelated {
		return 1 + uint32(d%8)
	}
	switch d %= 200; {
	case d >= 2*l.inFlight:
		return f.packets
	case d < l.inFlight && f.packets > 1:
		return f.packets - 1
	}
	return f.packets + 1 // a flow without packets would not be in the flowset
}

// exported sends a set in chunks and assembles it again.
func exported(h *flowset.Header, set *sketch.Set[sketch.Key4]) (*flows.Flowset, error) {
	assembler, err := flows.NewAssembler(flows.DefaultConfig())
	if err != nil {
		return nil, err
	}
	split, err := h.Split(60_000)
	if err != nil {
		return nil, err
	}
	var done []*flows.Flowset
	var chunk []byte
	var cell flowset.Cell
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		chunk = h.Open(chunk[:0], span)
		if span.Section == flowset.Filter {
			chunk = set.Filter().AppendBytes(chunk, span.First, span.Count)
		} else {
			for i := span.First; i < span.First+span.Count; i++ {
				c := set.Cell(i)
				sketch.PutKey(&cell.Key, &c.Key)
				cell.Flows, cell.Packets, cell.InPort, cell.OutPort = c.Flows, c.Packets, c.In, c.Out
				chunk = h.Layout.AppendCell(chunk, &cell)
			}
		}
		if done, err = assembler.AddChunk(0, flowset.Seal(chunk, 0), done); err != nil {
			return nil, err
		}
	}
	if len(done) != 1 {
		return nil, fmt.Errorf("export of switch %d: %d flowsets were assembled, want 1", h.Switch, len(done))
	}
	return done[0], nil
}

// allFlows reports whether a decoded flowset has exactly the flows that the switch
// counted.
func (c *contents) allFlows(d *flows.Decoded) bool {
	var sum uint64
	for i := range d.Records {
		key := sketch.Pack4(&d.Records[i].Key)
		sum += digest(&key, 0)
	}
	return len(d.Records) == c.flows && sum == c.keys
}

// allCounts reports whether also all counts are exact, and right.
func (c *contents) allCounts(d *flows.Decoded) bool {
	var sum uint64
	for i := range d.Records {
		if d.Records[i].Grade != flows.Exact {
			return false
		}
		key := sketch.Pack4(&d.Records[i].Key)
		sum += digest(&key, d.Records[i].Packets)
	}
	return len(d.Records) == c.flows && sum == c.counted
}

func digestOf(a, b uint64) uint64 { return digest(&sketch.Key4{a, b}, 0) }

// parallel runs n jobs on all cores and returns the first error.
func parallel(ctx context.Context, n int, do func(i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
