package erspan_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/wire/erspan"
)

// A collector decodes what follows the outer IP header of a mirrored frame.
func Example() {
	b := erspan.Mirror{
		Kind: erspan.TypeIII, Session: 7, VLAN: 100, PDU: true,
		Timestamp: 123456, Granularity: erspan.Per100ns, Frame: []byte("Ethernet frame"),
	}.AppendTo(nil)

	var m erspan.Mirror
	if _, err := m.Parse(b); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("session %d, VLAN %d, %d ticks of %v: %s\n", m.Session, m.VLAN, m.Timestamp, m.Granularity.Unit(), m.Frame)
	// Output:
	// session 7, VLAN 100, 123456 ticks of 100ns: Ethernet frame
}
