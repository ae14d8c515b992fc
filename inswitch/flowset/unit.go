package flowset

import (
	"math"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// unit is the flowset of one scope and one family: two tables, one of which is
// filled while the other is exported.
type unit[K sketch.Key] struct {
	seed   uint64
	scope  model.PortID
	layout wire.Layout
	banks  [2]bank[K]
	missed uint32 // while no table was free
	probes uint32 // the same of probes
}

type bank[K sketch.Key] struct {
	set     *sketch.Set[K]
	unkeyed uint32
	missed  uint32
	probes  uint32
}

func newUnits[K sketch.Key](t Table, boot uint64, sw model.NodeID, scopes []model.PortID) ([]unit[K], error) {
	if !t.enabled() {
		return nil, nil
	}
	units := make([]unit[K], len(scopes))
	for i, scope := range scopes {
		u := unit[K]{seed: SeedOf(boot, sw, scope), scope: scope, layout: t.Layout}
		for b := range u.banks {
			set, err := sketch.NewSet[K](t.Geometry, u.seed)
			if err != nil {
				return nil, err
			}
			u.banks[b].set = set
		}
		units[i] = u
	}
	return units, nil
}

// SeedOf derives the seed of a switch and scope, 0 for the whole switch, from Config.Seed.
func SeedOf(boot uint64, sw model.NodeID, scope model.PortID) uint64 {
	z := boot ^ uint64(sw)*0x9e3779b97f4a7c15 ^ uint64(scope)*0xbf58476d1ce4e5b9
	z = (z ^ z>>30) * 0x94d049bb133111eb
	return z ^ z>>31
}

// countPacket counts a packet with its key in a bank.
func (u *unit[K]) countPacket(bank int, k *K, ev *inswitch.Event) {
	b := &u.banks[bank]
	h, isNew := b.set.AddPacket(k, uint32(ev.Packet.UnlabeledSize()))
	if isNew {
		u.insertFlow(b, k, h, ev)
	} else if id := ev.Packet.KeyID; id != 0 {
		b.set.RememberID(id, k)
	}
}

// insertFlow adds a new flow with the ports of its first packet. The egress
// port is looked up once per flow and slot: at Ingress the packet is not routed
// yet. 0 means that the packet is not forwarded.
func (u *unit[K]) insertFlow(b *bank[K], k *K, h sketch.Hash, ev *inswitch.Event) {
	var out model.PortID
	if u.layout.Ports != 0 {
		out, _ = ev.Switch.Route(ev.Packet.Outer)
	}
	b.set.InsertFlow(k, h, ev.In, out)
}

// exporter is a unit of either family.
type exporter interface {
	// header fills in the unit's fields of a bank.
	header(bank int, h *wire.Header)
	// appendSpan appends the units of a span and clears its cells.
	appendSpan(bank int, span wire.Span, b []byte) []byte
	// clear clears what appendSpan has not: filter and counts.
	clear(bank int)
	// takeMissed moves the count of packets without a table to a bank.
	takeMissed(bank int)
}

func (u *unit[K]) header(bank int, h *wire.Header) {
	b := &u.banks[bank]
	h.Seed, h.Scope = u.seed, u.scope
	h.Geometry, h.Layout = wire.Geometry(b.set.Family().Geometry), u.layout
	packets, bytes := b.set.Totals()
	h.Counts = wire.Counts{Packets: packets, Bytes: bytes, Flows: b.set.Inserted(), Unkeyed: b.unkeyed, Missed: b.missed, Probes: b.probes}
}

func (u *unit[K]) appendSpan(bank int, span wire.Span, dst []byte) []byte {
	s := u.banks[bank].set
	if span.Section == wire.Filter {
		return s.Filter().AppendBytes(dst, span.First, span.Count)
	}
	var cell wire.Cell
	for i := span.First; i < span.First+span.Count; i++ {
		c := s.Cell(i)
		sketch.PutKey(&cell.Key, &c.Key)
		cell.Flows, cell.Packets, cell.Bytes = c.Flows, c.Packets, c.Bytes
		cell.InPort, cell.OutPort = c.In, c.Out
		dst = u.layout.AppendCell(dst, &cell)
	}
	s.ClearCells(span.First, span.Count)
	return dst
}

func (u *unit[K]) clear(i int) {
	set := u.banks[i].set
	set.ClearFilter()
	u.banks[i] = bank[K]{set: set}
}

func (u *unit[K]) takeMissed(bank int) {
	u.banks[bank].missed = u.missed
	u.missed = 0
	u.banks[bank].probes = min(u.banks[bank].probes+u.probes, wire.MaxProbes)
	u.probes = 0
}

// saturatingIncrement increments n up to the largest value, as the format
// requires.
func saturatingIncrement(n *uint32) {
	if *n < math.MaxUint32 {
		*n++
	}
}
