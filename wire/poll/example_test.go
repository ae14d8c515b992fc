package poll_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// A host polls the path of a slow flow.
func Example() {
	flow, err := model.ParseFlowKey("udp 10.0.0.2:49152 > 10.1.0.3:4791")
	if err != nil {
		fmt.Println(err)
	}
	b := poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 32, Event: poll.Event{Host: 5, Number: 1}, Flow: flow}.AppendTo(nil)

	var p poll.Poll
	n, err := p.Parse(b)
	fmt.Println(n, err)
	fmt.Println("request", p.Event, "traces", p.Flag, "of", p.Flow)
	// Output:
	// 37 <nil>
	// request 5#1 traces victim of udp 10.0.0.2:49152 > 10.1.0.3:4791
}
