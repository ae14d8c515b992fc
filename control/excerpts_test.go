package control

import (
	"fmt"
	"testing"

	"github.com/weft-telemetry/weft/analyze/provenance/drawing"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

// TestLargeDrawingsAreFew: drawings of large graphs are kept within their memory, the
// newest ones.
func TestLargeDrawingsAreFew(t *testing.T) {
	var d excerptCache
	for i := range uint32(2 * maxExcerpts) {
		g := &drawing.Drawing{}
		for n := range 2000 {
			g.Flows = append(g.Flows, drawing.Flow{ID: fmt.Sprint("flow ", n)})
		}
		d.add(poll.Event{Number: i / 2}, &graphExcerpt{drawing: g}) // each replaced once
	}
	sum := model.Bytes(0)
	for _, g := range d.list {
		sum += g.memory()
	}
	if sum != d.memory || sum > verdictMemory || len(d.list) != len(d.order) || len(d.list) < 10 {
		t.Errorf("%d drawings of %v, counted as %v; want some, within %v", len(d.list), sum, d.memory, model.Bytes(verdictMemory))
	}
	if d.list[poll.Event{Number: maxExcerpts - 1}] == nil || d.list[poll.Event{}] != nil {
		t.Error("want the newest drawings, not the oldest")
	}
}
