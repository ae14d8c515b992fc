package sketch

import "github.com/weft-telemetry/weft/model"

// Cell is the sum of the flows that hash to it: 40 bytes for IPv4, 64 for IPv6.
type Cell[K Key] struct {
	Key     K // XOR of the keys
	Packets uint64
	Bytes   uint64
	Flows   uint32
	In, Out model.PortID // XOR of the ports of each flow's first packet
}

// Toggle XORs a flow's key and ports into the cell or, the second time, out of
// it. Counts are left to the caller: encoding adds to them and decoding
// subtracts.
func (c *Cell[K]) Toggle(k *K, in, out model.PortID) {
	for i := range len(c.Key) {
		c.Key[i] ^= (*k)[i]
	}
	c.In ^= in
	c.Out ^= out
}

// Remove removes a flow that is known to be in the cell, with what it is known
// to have counted. Counts wrap below zero, as unsigned numbers do: adding the
// flow again restores them.
func (c *Cell[K]) Remove(flow *Cell[K]) {
	c.Toggle(&flow.Key, flow.In, flow.Out)
	c.Packets -= flow.Packets
	c.Bytes -= flow.Bytes
	c.Flows--
}

// Empty reports whether the cell holds no flow.
func (c *Cell[K]) Empty() bool { return *c == Cell[K]{} }
