package paths

import (
	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/model"
)

// flowIndex gives the flows of maps of successive slots one key and one id each. A flow
// is released with the last map that has it.
type flowIndex struct {
	table flowtable.Table
	users []uint16 // by id: the maps that have the flow
}

// number returns the id of a flow, a new one if no map has it.
func (x *flowIndex) number(key *model.FlowKey, hash uint64) uint32 {
	id, added := x.table.FindOrAdd(key, hash)
	if added && int(id) == len(x.users) {
		x.users = append(x.users, 0)
	}
	return id
}

// release removes the flows of a map.
func (x *flowIndex) release(ids []uint32) {
	for _, id := range ids {
		if x.users[id]--; x.users[id] == 0 {
			x.table.Delete(id)
		}
	}
}

// withID returns the number of a flow by id.
func (m *Map) withID(id uint32) (flow uint32, ok bool) {
	if int(id) >= len(m.byID) {
		return 0, false
	}
	flow = m.byID[id]
	return flow, int(flow) < len(m.ids) && m.ids[flow] == id
}

// addFlow adds a flow, whose first record is at a place among all of the slot.
func (m *Map) addFlow(id uint32, hash uint64, place uint32) (flow uint32) {
	flow = uint32(len(m.ids))
	m.work.index.users[id]++
	m.ids, m.hashes, m.places = append(m.ids, id), append(m.hashes, hash), append(m.places, place)
	if n := int(id) + 1 - len(m.byID); n > 0 {
		m.byID = append(m.byID, make([]uint32, n)...)
	}
	m.byID[id] = flow
	return flow
}

// ID returns a small number that a flow has in all maps that share a workspace, as long as
// one of them has the flow. Then another flow may get it.
func (m *Map) ID(flow int) uint32 { return m.ids[flow] }

// In returns the number of a flow in another map, or -1.
func (m *Map) In(other *Map, flow int) int {
	if m.work != other.work {
		return other.Find(m.Key(flow), m.Hash(flow))
	}
	if n, ok := other.withID(m.ids[flow]); ok {
		return int(n)
	}
	return -1
}
