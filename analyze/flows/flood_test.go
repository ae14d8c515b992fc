package flows

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// bomb is a chunk of one cell whose header claims a table of many.
func bomb(sw model.NodeID, slot, cells uint32) []byte {
	h := flowset.Header{
		Switch: sw, Seed: 5, Slot: slot, Start: 70e6, Length: 10 * time.Millisecond,
		Geometry: flowset.Geometry{FilterHashes: 8, FilterBits: 1024, Tables: 3, TableCells: cells / 3},
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4},
	}
	return flowset.Chunk{Header: h, Section: flowset.Cells, Data: make([]byte, h.Layout.Size())}.AppendTo(nil)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHeaderClaimsCostNothing: datagrams that claim tables of 50 million cells, and
// many that claim tables that are allowed, cost what they carry.
func TestHeaderClaimsCostNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.HoldEmitted = true
	a, err := NewAssembler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const datagrams = 1000
	huge, large := bomb(1, 1, 50_000_000), make([][]byte, datagrams)
	for i := range large {
		large[i] = bomb(model.NodeID(i), 0, 3_000_000)
	}
	n := allocated(func() {
		for i := range large {
			if _, err := a.AddChunk(0, huge, nil); !errors.Is(err, ErrTooLarge) {
				t.Errorf("AddChunk of 50 million cells = %v; want %v", err, ErrTooLarge)
			}
			if _, err := a.AddChunk(0, large[i], nil); err != nil {
				t.Error(err)
			}
		}
	})
	if perDatagram := n / datagrams; perDatagram > 4096 {
		t.Errorf("%d bytes allocated for each claim; want at most 4096", perDatagram)
	}
	if out := a.Expire(model.Time(time.Second), nil); len(out) != 0 || a.Stats().Sparse != datagrams {
		t.Errorf("%d flowsets of one cell emitted, %d sparse; want none of %d", len(out), a.Stats().Sparse, datagrams)
	}
}

// TestInventedSourcesDoNotStopHonestOnes: more sources than the table has entries, and
// then the flowset of an honest one that was not among them is assembled.
func TestInventedSourcesDoNotStopHonestOnes(t *testing.T) {
	a, err := NewAssembler(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := bomb(0, 0, 3000)
	h := flowset.Chunk{}
	if _, err := h.Parse(b); err != nil {
		t.Fatal(err)
	}
	var out []*Flowset
	for i := range uint32(1<<18 + 100) {
		h.Switch = model.NodeID(i)
		b = h.AppendTo(b[:0])
		now := model.Time(i) * model.Time(time.Microsecond)
		out, _ = a.AddChunk(now, b, out[:0])
		out = a.Expire(now, out[:0])
	}
	if n := len(a.sources.all); n > maxSources {
		t.Errorf("%d sources kept; want at most %d", n, maxSources)
	}
	now := model.Time(time.Second)
	out = out[:0]
	const honest = 1 << 20
	for _, b := range small(t, honest, 9).chunks(t, 400) {
		if out, err = a.AddChunk(now, b, out); err != nil {
			t.Fatal(err)
		}
	}
	if len(out) == 0 || out[len(out)-1].Switch != honest || out[len(out)-1].MissingCells != 0 {
		t.Errorf("%d flowsets after the flood; want that of switch %d, complete", len(out), honest)
	}
	a.Expire(now.Add(time.Minute), nil)
	if n := len(a.sources.all); n != 0 {
		t.Errorf("%d sources after a minute of silence; want none", n)
	}
}

// TestEmittedFlowsetsAreHeld: flowsets that were emitted count until they are
// released, so that those that wait for others are within the limit, too.
func TestEmittedFlowsetsAreHeld(t *testing.T) {
	const room = 5
	size := sizeOf(&small(t, 1, 0).header) + pendingSize
	a, err := NewAssembler(Config{Timeout: time.Second, MaxOpen: 4, MaxMemory: room * size, MaxCells: 1 << 20, HoldEmitted: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []*Flowset
	for slot := range uint32(3 * room) {
		for _, b := range small(t, 1, slot).chunks(t, 400) {
			if out, err = a.AddChunk(0, b, out); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := 0
	for _, fs := range out {
		if !fs.Dropped() {
			kept++
		}
	}
	if len(out) != 3*room || kept != room || a.Held() != room*size || out[len(out)-1].Dropped() {
		t.Errorf("%d flowsets emitted, %d kept, %v held; want %d, the newest %d, %v", len(out), kept, a.Held(), 3*room, room, room*size)
	}
	for _, fs := range out {
		a.Release(fs)
	}
	if a.Held() != 0 {
		t.Errorf("%v held after all were released; want nothing", a.Held())
	}
}

// TestFlooderLosesItsOwnFlowsets: beside a switch that floods, whatever it claims and
// in whatever order, an honest fabric decodes the same flows.
func TestFlooderLosesItsOwnFlowsets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const switches = 4
		size := sizeOf(&small(t, 0, 0).header) + pendingSize
		decode := func(flood bool) (list []Decoded) {
			cfg := Config{Timeout: time.Second, MaxOpen: 4, MaxMemory: (2*switches + 2) * size, MaxCells: 1 << 20, HoldEmitted: true}
			a, err := NewAssembler(cfg)
			if err != nil {
				rt.Fatal(err)
			}
			var sets []*Flowset
			n := uint32(0)
			for slot := range uint32(2) {
				var chunks [][][]byte
				for sw := range model.NodeID(switches) {
					chunks = append(chunks, small(t, sw, slot).chunks(t, 200))
				}
				for i := range chunks[0] {
					for sw := range chunks {
						for range 3 {
							if !flood {
								break
							}
							n++
							cells := rapid.SampledFrom([]uint32{30, 300, 900, 30_000, 1 << 19}).Draw(rt, "cells")
							sets, _ = a.AddChunk(0, bomb(99, n, cells), sets)
						}
						if sets, err = a.AddChunk(0, chunks[sw][i], sets); err != nil {
							rt.Fatalf("an honest chunk is refused: %v", err)
						}
					}
				}
			}
			if a.Held() > cfg.MaxMemory {
				rt.Fatalf("%v held; want at most %v", a.Held(), cfg.MaxMemory)
			}
			for _, fs := range sets {
				if fs.Switch != 99 && !fs.Dropped() {
					d := SingleDecode(fs)
					d.MayContain = nil
					list = append(list, d)
				}
			}
			return list
		}
		with, without := decode(true), decode(false)
		if diff := cmp.Diff(without, with); diff != "" || len(without) != 2*switches {
			rt.Fatalf("%d flowsets decoded, with a flood beside them (-without +with):\n%s", len(without), diff)
		}
	})
}
