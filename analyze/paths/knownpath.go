package paths

import (
	"cmp"
	"math/bits"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// knownPaths numbers the paths of the flows of a workspace. A fabric has few paths against its
// flows, and what follows from the ports of a path need not be found for each of them. Numbers
// stay the same over successive slots, until there are too many paths.
type knownPaths struct {
	slots   []uint32 // open addressing: a number plus one; 0: free. At most half is used.
	list    []knownPath
	edition *PathEdition
	flows   int // since begin
	most    int // paths; 0: maxKnownPaths
}

// PathEdition identifies numbers of paths: numbers of two editions have nothing to do with each
// other.
type PathEdition struct{ _ byte }

const (
	// maxSteps is the longest path that has a number. One line of the cache has that many steps.
	maxSteps = 8
	// maxKnownPaths bounds the paths of a workspace.
	maxKnownPaths = 1 << 12
	// fewPaths, and pathsPerFlow for each flow of a slot, are kept beyond it.
	fewPaths     = 256
	pathsPerFlow = 4
	noPath       = ^uint32(0)
)

// knownPath is what is known of the flows whose sightings have the same switches and ports, in
// the order in which they were added.
type knownPath struct {
	steps   [maxSteps]uint64
	order   [maxSteps]uint8 // by place on the path: which of the sightings
	length  uint8
	shape   shape // chain, and whether it is delivered; 0: ports alone do not order it
	inOrder bool

	// To dst, these routes intend all its hops. Flows are those of the present slot that are
	// still to be counted at its ports.
	dst    model.Addr
	routes *topo.Routes
	flows  int32
}

// pathSeed makes collisions unpredictable for those who choose ports.
var pathSeed = rand.Uint64() | 1

func stepOf(s *Sighting) uint64 { return uint64(s.Switch)<<32 | uint64(s.In)<<16 | uint64(s.Out) }

// number returns the number of the path of some sightings, in the order in which they were added;
// noPath if it has none, because it is long, one too many, or not ordered by ports alone. A path
// that is new is examined.
func (t *knownPaths) number(ports *Ports, list []Sighting) uint32 {
	t.flows++
	if len(list) > maxSteps {
		return noPath
	}
	var steps [maxSteps]uint64
	hash := uint64(len(list))
	for i := range list {
		step := stepOf(&list[i])
		steps[i] = step
		hi, lo := bits.Mul64(hash^step, pathSeed)
		hash = hi ^ lo
	}
	if len(t.slots) == 0 {
		t.slots = make([]uint32, 64)
	}
	mask := uint64(len(t.slots) - 1)
	at := hash & mask
	for ; t.slots[at] != 0; at = (at + 1) & mask {
		n := t.slots[at] - 1
		if k := &t.list[n]; k.steps == steps && int(k.length) == len(list) {
			if k.shape == 0 {
				return noPath
			}
			return n
		}
	}
	if t.full() {
		return noPath
	}
	k := knownPath{steps: steps, length: uint8(len(list))}
	k.examine(ports, list)
	t.list = append(t.list, k)
	t.slots[at] = uint32(len(t.list))
	if 2*len(t.list) == len(t.slots) {
		t.grow()
	}
	if k.shape == 0 {
		return noPath
	}
	return uint32(len(t.list) - 1)
}

// grow makes the table larger.
func (t *knownPaths) grow() {
	t.slots = make([]uint32, 4*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := range t.list {
		k := &t.list[n]
		hash := uint64(k.length)
		for _, step := range k.steps[:k.length] {
			hi, lo := bits.Mul64(hash^step, pathSeed)
			hash = hi ^ lo
		}
		at := hash & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(n + 1)
	}
}

func (t *knownPaths) full() bool { return len(t.list) >= cmp.Or(t.most, maxKnownPaths) }

// begin begins a map. All paths are forgotten if they are as many as there may be, or many more than
// flows use: each loop and each lost report leaves some that no flow will have again.
func (t *knownPaths) begin() {
	if t.edition == nil || t.full() || len(t.list) > fewPaths+pathsPerFlow*t.flows {
		clear(t.slots)
		t.list, t.edition = t.list[:0], new(PathEdition)
	}
	t.flows = 0
}

// examine finds the order of a path.
func (k *knownPath) examine(ports *Ports, list []Sighting) {
	var order [maxChain]int8
	if !chainOrder(ports, list, &order) {
		return
	}
	k.shape, k.inOrder = chain, true
	for i := range list {
		k.order[i] = uint8(order[i])
		k.inOrder = k.inOrder && int(order[i]) == i
	}
	if end := &list[order[len(list)-1]]; ports.Peer(end.Switch, end.Out).Kind == HostPeer {
		k.shape |= delivered
	}
}

// put puts sightings of the path in its order.
func (k *knownPath) put(list []Sighting) {
	if k.inOrder {
		return
	}
	var copied [maxSteps]Sighting
	copy(copied[:], list)
	for i := range list {
		list[i] = copied[k.order[i]&(maxSteps-1)]
	}
}

func (m *Map) beginPaths() {
	m.work.paths.begin()
	m.edition = m.work.paths.edition
}

// known returns what is known of the path of a flow that ports alone order; nil: nothing.
func (m *Map) known(flow int) *knownPath {
	if n, ok := m.PathNumber(flow); ok {
		return &m.work.paths.list[n]
	}
	return nil
}

// PathNumber returns a small number of a flow's path: flows with the same one passed the same
// ports in the same order, each of which leads to the next switch. It is known once OrderPaths has
// been called, and the same in all maps with the same PathEdition.
func (m *Map) PathNumber(flow int) (n uint32, ok bool) {
	if len(m.numbers) == 0 || m.edition != m.work.paths.edition {
		return 0, false
	}
	n = m.numbers[flow]
	return n, n != noPath
}

// PathEdition returns the edition of the path numbers: that of the maps of one workspace, until
// there are too many paths.
func (m *Map) PathEdition() *PathEdition { return m.edition }

// countKnown adds the flows whose paths were found to be as intended by their numbers.
func (d *Detector) countKnown(t *knownPaths) {
	for n := range t.list {
		k := &t.list[n]
		if k.flows == 0 {
			continue
		}
		for _, step := range k.steps[:k.length] {
			sw, out := model.NodeID(step>>32), model.PortID(step)
			port, _ := d.ports.Number(sw, out) // it leads to a switch or a host
			node, _ := d.ports.Number(sw, 0)
			d.part.passed.addMany(port, k.flows)
			d.part.asIntended.addMany(node, k.flows)
		}
		k.flows = 0
	}
}
