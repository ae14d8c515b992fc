package pfc_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// A port pauses priority 3 of its neighbour for as long as a frame can request.
func Example() {
	b := pfc.Pause(model.MAC{2, 0, 0, 1, 0, 3}, 3, pfc.MaxQuanta).AppendTo(nil)

	var f pfc.Frame
	if _, err := f.Parse(b); err != nil {
		fmt.Println(err)
	}
	if q, ok := f.PauseOf(3); ok {
		fmt.Println("priority 3 paused for", q.Duration(100*model.Gbps))
	}
	_, ok := f.PauseOf(4)
	fmt.Println("priority 4 changed:", ok)
	// Output:
	// priority 3 paused for 335.539µs
	// priority 4 changed: false
}
