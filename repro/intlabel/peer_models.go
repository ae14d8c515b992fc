package intlabel

import wire "github.com/weft-telemetry/weft/wire/label"

// Models of the systems that the paper compares with, for a k-ary fat-tree. Bytes
// are those that cross links between switches in one telemetry interval: links of
// hosts matter for Pingmesh only, and are not counted.
const (
	frame = 14 + 20 + 8 // Ethernet, IPv4, UDP of a probe
	ping  = 64          // least Ethernet frame: a TCP SYN or its answer
	mtu   = 1500
)

// tree counts a fat-tree.
type tree struct{ k, half float64 }

func newTree(k int) tree { return tree{float64(k), float64(k) / 2} }

func (t tree) tors() float64  { return t.k * t.half }
func (t tree) hosts() float64 { return t.k * t.half * t.half }

// tier returns how many directed links lead from one tier of switches to the next:
// the same number between all tiers.
func (t tree) tier() float64 { return t.k * t.half * t.half }

// labelBytes: every port of the fabric writes one label per labelling interval,
// and a telemetry interval has two of those. The worst case is assumed: each label
// is alone on its packet (36 bytes) and the packet takes the longest path, so that
// labels of the first switch cross 4 links, of the next 3, and so on.
func (t tree) labelBytes() float64 { return 2 * t.tier() * wire.FirstGrowth * (4 + 3 + 2 + 1) }

// hulaBytes: every ToR floods one probe per interval upwards on all links, leaves
// forward it to their other ToRs and to all their spines, spines down to all other
// pods, leaves there to all their ToRs. Each switch adds 32 bytes of its state.
func (t tree) hulaBytes() float64 {
	size := func(hop float64) float64 { return frame + wire.OptionSize + wire.ItemSize*hop }
	up := t.half
	across := up * (t.half - 1)
	spine := up * t.half
	down := spine * (t.k - 1)
	last := down * t.half
	return t.tors() * (up*size(1) + (across+spine)*size(2) + down*size(3) + last*size(4))
}

// pathBytes: INT-path's probes cross every directed link between switches once,
// along trails without overlap. A probe carries all states of its trail, and its
// source route, one byte per hop; trails are cut where a probe would exceed the
// MTU, which is the cheapest cut.
func (t tree) pathBytes() float64 {
	most := float64((mtu - frame - wire.OptionSize) / (wire.ItemSize + 1))
	mean := frame + wire.OptionSize + wire.ItemSize*(most+1)/2 + most/2
	return 4 * t.tier() * mean
}

// pathLeast is a lower bound for INT-path whatever its trails: probes of one hop,
// or states that are counted once and not carried along.
func (t tree) pathLeast() float64 { return 4 * t.tier() * (wire.ItemSize + wire.OptionSize) }

// pingBytes: a host pings all others of its rack, and one host in every other
// rack, one packet in each direction. (Pingmesh's two levels inside a data
// center; it pings far less often than ten times per second.)
func (t tree) pingBytes() float64 {
	pod, far := t.half-1, (t.k-1)*t.half // racks, 2 and 4 links away
	return t.hosts() * 2 * ping * (pod*2 + far*4)
}

// Generators of probes: the number of devices that must send them.
func (t tree) hulaGenerators() float64 { return t.tors() }
func (t tree) pingGenerators() float64 { return t.hosts() + t.tors() }

// pathGenerators: an Euler trail covers a graph without odd vertices; otherwise
// each odd vertex starts or ends one. Spines and leaves have k ports between
// switches, ToRs half as many.
func (t tree) pathGenerators() float64 {
	if int(t.half)%2 == 1 {
		return t.tors()
	}
	return 1
}
