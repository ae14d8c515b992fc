package flowwatch

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// TestUnknownSwitchCannotEndTheProcess: flowsets of nodes and ports that the fabric does
// not have, of hosts, and with impossible totals are refused and counted; and the
// analyses stand a map that has them.
func TestUnknownSwitchCannotEndTheProcess(t *testing.T) {
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(DefaultConfig(topo.NewIntent(routes)))
	if err != nil {
		t.Fatal(err)
	}
	sw := fabric.Switches()[0]
	slot := uint32(0)
	for name, tc := range map[string]struct {
		header wire.Header
		want   error
	}{
		"no such node":       {wire.Header{Switch: 5000}, flows.ErrUnknown},
		"last id":            {wire.Header{Switch: math.MaxUint32}, flows.ErrUnknown},
		"a host":             {wire.Header{Switch: fabric.Hosts()[0]}, flows.ErrUnknown},
		"no such port":       {wire.Header{Switch: sw, Scope: 999}, flows.ErrUnknown},
		"2^64 - 1 packets":   {wire.Header{Switch: sw, Counts: wire.Counts{Packets: math.MaxUint64}}, flows.ErrImplausible},
		"2^63 bytes":         {wire.Header{Switch: sw, Counts: wire.Counts{Bytes: 1 << 63}}, flows.ErrImplausible},
		"as it should be":    {wire.Header{Switch: sw}, nil},
		"a time of year 1":   {wire.Header{Switch: sw, Start: math.MinInt64}, nil},
		"the end of time":    {wire.Header{Switch: sw, Start: math.MaxInt64}, nil},
		"a port that it has": {wire.Header{Switch: sw, Scope: 1}, nil},
	} {
		h := tc.header
		slot++
		h.Slot = slot
		h.Length, h.Layout = 10*time.Millisecond, wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4}
		h.Geometry = wire.Geometry{FilterHashes: 8, FilterBits: 1024, Tables: 3, TableCells: 10}
		b := wire.Chunk{Header: h, Section: wire.Cells, Data: make([]byte, h.Layout.Size())}.AppendTo(nil)
		if err := w.IngestReport(0, b); !errors.Is(err, tc.want) {
			t.Errorf("%s: IngestReport = %v; want %v", name, err, tc.want)
		}
	}
	if s := w.Stats(); s.Unknown != 4 || s.Implausible != 2 {
		t.Errorf("%d unknown, %d implausible; want 4 and 2", s.Unknown, s.Implausible)
	}
	for range w.Flush(0) {
	}

	key := model.FlowKey{
		Src: fabric.Node(fabric.Hosts()[0]).IPv4, Dst: fabric.Node(fabric.Hosts()[5]).IPv4, SrcPort: 1, DstPort: 2, Proto: model.TCP,
	}
	for n := range int64(3) {
		s := &Slot{Index: n, Length: w.cfg.Slot}
		for _, id := range []model.NodeID{sw, 5000, math.MaxUint32} {
			s.Decoded = append(s.Decoded, flows.Decoded{Switch: id, Length: w.cfg.Slot, Records: []flows.Record{
				{Key: key, Packets: 1000, Bytes: 1, In: 9999, Out: 9999, Grade: flows.Exact},
			}})
		}
		w.flows.observe(s, []flowsetSource{{sw: 5000}, {sw: math.MaxUint32}})
	}
	w.TakeLinks()
	w.TakeImbalances()
}
