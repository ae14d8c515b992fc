package filter_test

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/filter"
)

// A schema declares the fields of a record; filters are parsed and matched by it.
func Example() {
	type packet struct {
		port    uint16
		latency time.Duration
	}
	schema := filter.NewSchema([]filter.Field[packet]{
		{Name: "udp.port", Type: filter.Int, About: "destination port", Get: filter.SingleValue(func(p *packet) filter.Value {
			return filter.IntValue(p.port)
		})},
		{Name: "trace.latency", Type: filter.Duration, About: "first to last hop", Get: filter.SingleValue(func(p *packet) filter.Value {
			return filter.IntValue(p.latency)
		})},
	}, nil)
	slow, err := schema.Parse("udp.port == 4791 && trace.latency > 10us")
	if err != nil {
		panic(err)
	}
	for _, p := range []packet{{4791, 3 * time.Microsecond}, {4791, 80 * time.Microsecond}, {53, time.Millisecond}} {
		fmt.Println(p.port, p.latency, slow.Match(&p))
	}
	_, err = schema.Parse("udp.prot == 53")
	fmt.Println(err)
	// Output:
	// 4791 3µs false
	// 4791 80µs true
	// 53 1ms false
	// filter: column 1: unknown field "udp.prot", want udp.port
}
