package flows

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// slowSwitch is a flowset of the reference implementation: cells as on the wire.
type slowSwitch struct {
	r      *recorded
	family sketch.Family
	cells  []flowset.Cell
	found  map[model.FlowKey]bool
}

func (s *slowSwitch) cellsOf(k model.FlowKey) (out []int) {
	var h sketch.Hash
	if k.V6 {
		key := sketch.Pack6(&k)
		h = sketch.HashOf(&s.family, &key)
	} else {
		key := sketch.Pack4(&k)
		h = sketch.HashOf(&s.family, &key)
	}
	if !s.r.filter.Has(&s.family, h) {
		return nil
	}
	for t := range int(s.family.Tables) {
		out = append(out, int(s.family.Cell(h, t)))
	}
	return out
}

func (s *slowSwitch) remove(k model.FlowKey) {
	s.found[k] = true
	for _, i := range s.cellsOf(k) {
		for j, b := range k.AppendTo(nil) {
			s.cells[i].Key[j] ^= b
		}
		s.cells[i].Flows--
	}
}

// scan takes the first pure cell's flow out.
func (s *slowSwitch) scan() bool {
	for i := range s.cells {
		if s.cells[i].Flows != 1 {
			continue
		}
		var k model.FlowKey
		if err := k.Parse(s.cells[i].Key[:s.r.header.Layout.Key]); err != nil {
			panic(err)
		}
		for _, c := range s.cellsOf(k) {
			if c == i {
				s.remove(k)
				return true
			}
		}
	}
	return false
}

// removeFirst removes the first flow of another switch that the filter contains.
func (s *slowSwitch) removeFirst(other *slowSwitch) bool {
	for k := range other.found {
		cells := s.cellsOf(k)
		fits := len(cells) > 0 && !s.found[k]
		for _, c := range cells {
			fits = fits && s.cells[c].Flows > 0
		}
		if fits {
			s.remove(k)
			return true
		}
	}
	return false
}

// slowFlows is FlowDecode as the paper describes it, one flow at a time.
func slowFlows(tr *traffic) (out []*slowSwitch) {
	at := map[model.NodeID]*slowSwitch{}
	for _, r := range tr.recorded {
		family, err := sketch.NewFamily(sketch.Geometry(r.header.Geometry), r.header.Seed)
		if err != nil {
			panic(err)
		}
		s := &slowSwitch{r: r, family: family, cells: append([]flowset.Cell(nil), r.cells...), found: map[model.FlowKey]bool{}}
		at[r.header.Switch] = s
		out = append(out, s)
	}
	for again := true; again; {
		again = false
		for _, s := range out {
			for s.scan() {
				again = true
			}
			for _, p := range tr.fabric.Node(s.r.header.Switch).Ports {
				if peer := at[p.Peer.Node]; peer != nil {
					for s.removeFirst(peer) {
						again = true
					}
				}
			}
		}
	}
	return out
}

// determined eliminates the equations of a switch all of whose flows are known,
// modulo a large prime, and returns the counts that they determine.
func (s *slowSwitch) determined() map[model.FlowKey]uint64 {
	const p = 1<<31 - 1
	var keys []model.FlowKey
	for k := range s.found {
		keys = append(keys, k)
	}
	rows := make([][]uint64, len(s.cells))
	for c := range rows {
		rows[c] = make([]uint64, len(keys)+1)
		rows[c][len(keys)] = s.r.cells[c].Packets
	}
	for i, k := range keys {
		for _, c := range s.cellsOf(k) {
			rows[c][i] = 1
		}
	}
	pivotOf := map[int]int{} // by column
	next := 0
	for col := range keys {
		pivot := next
		for pivot < len(rows) && rows[pivot][col] == 0 {
			pivot++
		}
		if pivot == len(rows) {
			continue
		}
		rows[next], rows[pivot] = rows[pivot], rows[next]
		inverse := powMod(rows[next][col], p-2)
		for j := range rows[next] {
			rows[next][j] = rows[next][j] * inverse % p
		}
		for i := range rows {
			if f := rows[i][col]; i != next && f != 0 {
				for j := range rows[i] {
					rows[i][j] = (rows[i][j] + (p-f)*rows[next][j]) % p
				}
			}
		}
		pivotOf[col] = next
		next++
	}
	out := map[model.FlowKey]uint64{}
	for col, row := range pivotOf {
		alone := true
		for j := range keys {
			alone = alone && (j == col || rows[row][j] == 0)
		}
		if alone {
			out[keys[col]] = rows[row][len(keys)]
		}
	}
	return out
}

// TestNetEqualsReference compares with FlowDecode flow by flow and with elimination:
// the same flows everywhere, and no count called exact that the equations do
// not determine. Filters are large enough for no false positive.
func TestNetEqualsReference(t *testing.T) {
	fabric := fatTree(t, 4)
	could, did := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		cells := rapid.Uint32Range(4, 16).Draw(rt, "cells")
		cfg := trafficConfig{
			geometry: sketch.Geometry{FilterHashes: 24, FilterBits: 1 << 14, Tables: rapid.Uint8Range(2, 4).Draw(rt, "tables"), TableCells: cells},
			layout:   flowset.Layout{Key: rapid.SampledFrom([]uint8{model.KeyLen4, model.KeyLen6}).Draw(rt, "key"), Flows: 4, Packets: 8},
			differ:   rapid.SampledFrom([]float64{0, 0.02, 0.2}).Draw(rt, "differ"),
			seed:     rapid.Uint64().Draw(rt, "seed"),
		}
		cfg.flows = int(float64(cells) * float64(cfg.geometry.Tables) * rapid.Float64Range(0.5, 5).Draw(rt, "load"))
		tr := cross(t, fabric, cfg)
		sets := tr.sets(t, 0, nil)
		got := NetDecode(sets, Options{Workers: 1}, NeighbourGuide(fabric, sets))
		for i, s := range slowFlows(tr) {
			checkRecords(rt, tr.recorded[i], &got[i])
			named := map[model.FlowKey]bool{}
			for _, r := range got[i].Records {
				named[r.Key] = true
			}
			for _, k := range got[i].Likely {
				named[k] = true
			}
			if len(named) != len(s.found) {
				rt.Fatalf("switch %d: %d flows; the reference has %d", sets[i].Switch, len(named), len(s.found))
			}
			for k := range s.found {
				if !named[k] {
					rt.Fatalf("switch %d: no %v; the reference has it", sets[i].Switch, k)
				}
			}
			if len(s.found) != len(tr.recorded[i].inserted) {
				continue
			}
			want := s.determined()
			for _, r := range got[i].Records {
				if v, ok := want[r.Key]; r.Grade == Exact && (!ok || v != r.Packets) {
					rt.Fatalf("switch %d: %+v; elimination has %d, determined %v", sets[i].Switch, r, v, ok)
				}
			}
			if cfg.geometry.Tables >= 3 && len(want) == len(s.found) {
				could++
				if got[i].Complete() {
					did++
				}
			}
		}
	})
	if did*10 < could*9 {
		t.Errorf("of %d flowsets that elimination solves, %d came out complete; want nine in ten", could, did)
	}
	t.Logf("of %d flowsets that elimination solves, %d came out complete", could, did)
}

// TestNetDoesNotDependOnWorkers decodes the same with one goroutine and many.
func TestNetDoesNotDependOnWorkers(t *testing.T) {
	fabric := fatTree(t, 4)
	tr := cross(t, fabric, trafficConfig{
		flows: 3000, geometry: sketch.Geometry{FilterHashes: 8, FilterBits: 1 << 14, Tables: 4, TableCells: 200},
		layout: flowset.Layout{Key: model.KeyLen4, Flows: 4, Packets: 4, Bytes: 4}, differ: 0.05, seed: 4,
	})
	sets := tr.sets(t, 0, nil)
	want := NetDecode(sets, Options{Workers: 1}, NeighbourGuide(fabric, sets))
	for _, workers := range []int{2, 3, 8} {
		got := NetDecode(sets, Options{Workers: workers}, NeighbourGuide(fabric, sets))
		for i := range got {
			if len(got[i].Records) != len(want[i].Records) || got[i].Unexplained != want[i].Unexplained {
				t.Fatalf("%d workers: %d records, %d unexplained; want %d, %d", workers, len(got[i].Records), got[i].Unexplained, len(want[i].Records), want[i].Unexplained)
			}
			for j, r := range got[i].Records {
				if r != want[i].Records[j] {
					t.Fatalf("%d workers: record %+v; want %+v", workers, r, want[i].Records[j])
				}
			}
		}
	}
}
