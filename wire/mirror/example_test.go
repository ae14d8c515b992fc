package mirror_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/wire/mirror"
)

// A switch encodes a mirrored packet as the data of an Append report.
func Example() {
	sent := mirror.Mirror{
		Reasons: mirror.Flag | mirror.Debug, Switch: 12, In: 3, Out: 4, Time: 1000,
		Length: 1500, Frame: []byte("the first bytes"),
	}
	var m mirror.Mirror
	if _, err := m.Parse(sent.AppendTo(nil)); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%v at switch %d, port %d to %d: %d of %d bytes\n", m.Reasons, m.Switch, m.In, m.Out, len(m.Frame), m.Length)
	// Output:
	// flag+debug at switch 12, port 3 to 4: 15 of 1500 bytes
}
