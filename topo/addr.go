package topo

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
)

// ula is the IPv6 prefix (unique local, /96) from which a node without a
// configured IPv6 address gets one: the last 32 bits are its IPv4 address, so a
// person can derive one from the other.
var ula = model.Addr{Hi: 0xfd00 << 48}

// IPv6For returns the IPv6 address of a node that was given none: fd00::a.b.c.d
// beside a.b.c.d. (Where the caller gave that one to another node, Build
// chooses a different one.)
func IPv6For(v4 model.Addr) model.Addr { return model.Addr{Hi: ula.Hi, Lo: uint64(v4.V4())} }

// ip4 makes an IPv4 address of four numbers, each of which must fit a byte.
func ip4(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

// rackAddr is the plan of the fabrics made of racks (leaf-spine, dumbbell,
// ring): the rack's switch is 10.(rack/256).(rack%256).1, its hosts count up
// from .2.
func rackAddr(rack, host int) netip.Addr { return ip4(10, rack/256, rack%256, host+2) }

// rackHosts is how many hosts fit below one switch in every plan: .2 to .254.
const rackHosts = 253

// spareAddrs assigns addresses to nodes that were declared without one: 10.0.0.1
// and up by id, skipping those in use. It only moves up, so a file full of used
// addresses costs no more than one pass over them.
type spareAddrs struct{ next uint32 }

func (s *spareAddrs) nextFree(id model.NodeID, taken func(model.Addr) bool) model.Addr {
	s.next = max(s.next, 10<<24+uint32(id)+1)
	for taken(model.Addr4(s.next)) {
		s.next++
	}
	s.next++
	return model.Addr4(s.next - 1)
}
