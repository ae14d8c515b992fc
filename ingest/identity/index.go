package identity

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// The rules by which a switch may number its interfaces, beside a list.
const (
	Learned = "learned" // as the switch says itself, with the names in its counters
	SONiC   = "sonic"   // EthernetN is N+1, as SONiC's SNMP agent has it
	ByPort  = "port"    // the ports' numbers in the topology
)

// ParseIndexes reads a rule or a list such as "1=Ethernet0,5=Ethernet4", and returns the
// ifIndexes of a switch's ports. The rule Learned has none.
func ParseIndexes(text string, ports int, name func(model.PortID) string, port func(text string) (model.PortID, bool)) (map[uint32]model.PortID, error) {
	m := map[uint32]model.PortID{}
	switch text {
	case "", Learned:
		return m, nil
	case ByPort:
		for p := 1; p <= ports; p++ {
			m[uint32(p)] = model.PortID(p)
		}
		return m, nil
	case SONiC:
		for p := 1; p <= ports; p++ {
			number, found := strings.CutPrefix(name(model.PortID(p)), "Ethernet")
			n, err := strconv.ParseUint(number, 10, 31)
			if !found || err != nil {
				return nil, fmt.Errorf("port %q is not an EthernetN of SONiC", name(model.PortID(p)))
			}
			m[uint32(n)+1] = model.PortID(p)
		}
		return m, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		index, of, found := strings.Cut(strings.TrimSpace(one), "=")
		n, err := strconv.ParseUint(strings.TrimSpace(index), 10, 32)
		if !found || err != nil || n == 0 {
			return nil, fmt.Errorf("%q, want %s, %s, %s, or a list such as 1=Ethernet0,5=Ethernet4", one, Learned, SONiC, ByPort)
		}
		p, ok := port(strings.TrimSpace(of))
		if !ok {
			return nil, fmt.Errorf("%q is not a port of the switch", of)
		}
		if other, twice := m[uint32(n)]; twice && other != p {
			return nil, fmt.Errorf("ifIndex %d is given twice", n)
		}
		m[uint32(n)] = p
	}
	return m, nil
}
