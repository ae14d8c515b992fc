package slowpaths

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// collector gathers per-flow results into findings by location.
type collector struct {
	list  []Finding
	index map[findingKey]int

	passedBefore, passed map[model.Port]int   // flows that passed a port: in the last slot, in this one
	asIntended           map[model.NodeID]int // times that a switch forwarded a flow as intended
}

type findingKey struct {
	kind paths.Kind
	slot int64
	at   model.Port
	loop string
}

func (c *collector) addFinding(f Finding, key model.FlowKey) {
	p := findingKey{kind: f.Kind, slot: f.Slot, at: f.At, loop: loopID(f.Switches)}
	i, ok := c.index[p]
	if !ok {
		if c.index == nil {
			c.index = map[findingKey]int{}
		}
		i = len(c.list)
		c.index[p] = i
		c.list = append(c.list, f)
	}
	c.list[i].Flows = append(c.list[i].Flows, key)
	c.list[i].Confirmed = c.list[i].Confirmed || f.Confirmed // one flow's proof is enough
}

// loopID identifies a loop whatever switch it starts from.
func loopID(loop []model.NodeID) string {
	if len(loop) == 0 {
		return ""
	}
	least := slices.Index(loop, slices.Min(loop))
	var b []byte
	for i := range loop {
		id := loop[(least+i)%len(loop)]
		b = append(b, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
	}
	return string(b)
}

// findings completes and sorts the findings from the map of a slot.
func (c *collector) findings(now int64) []Finding {
	for i := range c.list {
		f := &c.list[i]
		switch f.Kind {
		case WrongRoute:
			f.Others = c.asIntended[f.At.Node]
		case BlackHole:
			f.Others = c.passedBefore[f.At]
			if f.Slot == now {
				f.Others = c.passed[f.At]
			}
			if f.Others == 0 && f.HasNext {
				f.Kind = Silent
			}
		}
		slices.SortFunc(f.Flows, model.FlowKey.Compare)
	}
	slices.SortFunc(c.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.At.Node, b.At.Node), cmp.Compare(a.At.Port, b.At.Port),
			cmp.Compare(a.Slot, b.Slot), cmp.Compare(loopID(a.Switches), loopID(b.Switches)))
	})
	return c.list
}
