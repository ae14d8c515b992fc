package topo

import (
	"encoding/hex"

	"github.com/weft-telemetry/weft/model"
)

// MAC is an Ethernet address.
type MAC [6]byte

// macOf derives a port's address: 02 (locally administered, unicast), the
// node in three bytes, the port in two. It can be read backwards, so finding
// a port by MAC needs no table.
func macOf(p model.Port) MAC {
	return MAC{0x02, byte(p.Node >> 16), byte(p.Node >> 8), byte(p.Node), byte(p.Port >> 8), byte(p.Port)}
}

// port is the inverse of macOf. The port need not exist.
func (m MAC) port() (model.Port, bool) {
	return model.Port{
		Node: model.NodeID(m[1])<<16 | model.NodeID(m[2])<<8 | model.NodeID(m[3]),
		Port: model.PortID(m[4])<<8 | model.PortID(m[5]),
	}, m[0] == 0x02
}

// String prints "02:00:00:0c:00:03".
func (m MAC) String() string {
	b := make([]byte, 0, 17)
	for i := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = hex.AppendEncode(b, m[i:i+1])
	}
	return string(b)
}
