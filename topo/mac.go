package topo

import "github.com/weft-telemetry/weft/model"

// macOf derives a port's address: 02 (locally administered, unicast), the
// node in three bytes, the port in two. It is reversible, so finding a port by
// MAC needs no table.
func macOf(p model.Port) model.MAC {
	return model.MAC{0x02, byte(p.Node >> 16), byte(p.Node >> 8), byte(p.Node), byte(p.Port >> 8), byte(p.Port)}
}

// portOf is the inverse of macOf. The port need not exist.
func portOf(m model.MAC) (model.Port, bool) {
	return model.Port{
		Node: model.NodeID(m[1])<<16 | model.NodeID(m[2])<<8 | model.NodeID(m[3]),
		Port: model.PortID(m[4])<<8 | model.PortID(m[5]),
	}, m[0] == 0x02
}
