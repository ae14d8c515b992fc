package flows

import (
	"slices"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
)

// Memory of NetDecode and of the analyses of its results, for each cell of a table
// and for each cell that holds a flow: a flow found empties at least one.
const (
	decodedCell = 2*16 + 4 + 2*8 + 4 // copies of keys and counts, the queue, flags; or the cells for the next slot
	decodedFlow = DecodedFlow
)

// DecodedFlow is the memory for a flow at a switch: its record, and what the analyses keep
// of it in three slots. Flows that are at one switch take that much, those that pass five
// take 60 to 65 % of it at each, as their keys are kept once: control/flowwatch measures both.
const DecodedFlow = model.Bytes(unsafe.Sizeof(Record{})) + 456

// DecodeSize estimates the memory that decoding a flowset takes, with what is kept
// of the result for the slots that follow.
func (fs *Flowset) DecodeSize() model.Bytes {
	if fs.body == nil {
		return 0
	}
	return model.Bytes(fs.Tables)*model.Bytes(fs.TableCells)*decodedCell + model.Bytes(fs.body.occupied())*decodedFlow
}

// mostDecodeSize is what decoding takes at most, whatever the cells hold. It is usually
// enough, and then no cell needs to be looked at.
func mostDecodeSize(sets []*Flowset) (n model.Bytes) {
	for _, fs := range sets {
		if fs.body != nil {
			n += model.Bytes(fs.Tables) * model.Bytes(fs.TableCells) * (decodedCell + decodedFlow)
		}
	}
	return n
}

// FitDecode returns the flowsets that can be decoded together within a memory limit,
// in their order, and those that cannot. Those of the switch that needs most are
// left out first.
func FitDecode(sets []*Flowset, limit model.Bytes) (fit, excess []*Flowset) {
	if most := mostDecodeSize(sets); most <= limit {
		return sets, nil
	}
	sizes, bySwitch, total := make([]model.Bytes, len(sets)), map[model.NodeID]model.Bytes{}, model.Bytes(0)
	for i, fs := range sets {
		sizes[i] = fs.DecodeSize()
		bySwitch[fs.Switch] += sizes[i]
		total += sizes[i]
	}
	if total <= limit {
		return sets, nil
	}
	kept := make([]bool, len(sets))
	for i := range kept {
		kept[i] = true
	}
	for total > limit {
		most := -1
		for i, fs := range sets {
			if kept[i] && (most < 0 || bySwitch[fs.Switch] > bySwitch[sets[most].Switch] ||
				fs.Switch == sets[most].Switch && sizes[i] > sizes[most]) {
				most = i
			}
		}
		kept[most] = false
		bySwitch[sets[most].Switch] -= sizes[most]
		total -= sizes[most]
		excess = append(excess, sets[most])
	}
	for i, fs := range sets {
		if kept[i] {
			fit = append(fit, fs)
		}
	}
	return slices.Clip(fit), excess
}
