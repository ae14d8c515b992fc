package model

import (
	"cmp"
	"strconv"
)

// NodeID names a host or a switch. It is the node's index in its topology, so
// tables keyed by node are slices, and it is the switch id that every report
// carries on the wire.
type NodeID uint32

// PortID numbers a node's ports from 1, in the order their links were
// declared. Zero means no port: unknown, or the node's CPU.
type PortID uint16

// Priority is an 802.1p class, 0 to 7; PFC pauses one at a time.
type Priority uint8

// Port names one port of one node.
type Port struct {
	Node NodeID
	Port PortID
}

// Compare orders ports by node, then number.
func (p Port) Compare(o Port) int {
	return cmp.Or(cmp.Compare(p.Node, o.Node), cmp.Compare(p.Port, o.Port))
}

// String prints "12:3", node and port.
func (p Port) String() string {
	b := strconv.AppendUint(nil, uint64(p.Node), 10)
	b = append(b, ':')
	return string(strconv.AppendUint(b, uint64(p.Port), 10))
}
