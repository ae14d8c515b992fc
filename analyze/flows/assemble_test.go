package flows

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// small is a flowset of a few chunks.
func small(tb testing.TB, sw model.NodeID, slot uint32) *recorded {
	g := sketch.Geometry{FilterHashes: 8, FilterBits: 1024, Tables: 3, TableCells: 10}
	e := newEncoder(tb, sw, 5, g, flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 4})
	e.header.Slot = slot
	r := rand.New(rand.NewPCG(uint64(sw), uint64(slot)))
	for range 12 {
		e.add(someKey(r, false), 1+r.IntN(9), 100, 0, 0)
	}
	return e.done()
}

// TestAssembleSurvivesTheNetwork shuffles, repeats, damages and loses the
// chunks of several switches, and expects exactly what arrived back.
func TestAssembleSurvivesTheNetwork(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, err := NewAssembler(DefaultConfig())
		if err != nil {
			rt.Fatal(err)
		}
		var sent [][]byte
		var want Stats
		type part struct {
			sw    model.NodeID
			slot  uint32
			s     flowset.Section
			first uint32
		}
		arrived := map[part]uint32{}
		switches, slots := rapid.IntRange(1, 3).Draw(rt, "switches"), rapid.IntRange(1, 3).Draw(rt, "slots")
		size := rapid.IntRange(130, 400).Draw(rt, "chunk size")
		for sw := range switches {
			for slot := range slots {
				for _, b := range small(t, model.NodeID(sw), uint32(slot)).chunks(t, size) {
					switch rapid.IntRange(0, 9).Draw(rt, "fate") {
					case 0: // lost
					case 1: // damaged
						b[rapid.IntRange(0, len(b)-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
						sent = append(sent, b)
						want.Malformed++
					case 2: // twice
						sent = append(sent, b)
						fallthrough
					default:
						var c flowset.Chunk
						if _, err := c.Parse(b); err != nil {
							rt.Fatal(err)
						}
						arrived[part{c.Switch, c.Slot, c.Section, c.First}] = uint32(c.Len())
						sent = append(sent, b)
					}
				}
			}
		}
		var out []*Flowset
		shuffled := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)).Perm(len(sent))
		for _, i := range shuffled {
			out, _ = a.AddChunk(0, sent[i], out)
		}
		out = a.Flush(out)
		for _, fs := range out {
			r := small(t, fs.Switch, fs.Slot)
			cells, filter := fs.Units(flowset.Cells), fs.Units(flowset.Filter)
			for p, n := range arrived {
				switch {
				case p.sw != fs.Switch || p.slot != fs.Slot:
				case p.s == flowset.Cells:
					cells -= n
				default:
					filter -= n
				}
			}
			if fs.MissingCells != cells || fs.MissingFilter != filter {
				rt.Fatalf("switch %d slot %d misses %d cells, %d filter bytes; want %d, %d", fs.Switch, fs.Slot, fs.MissingCells, fs.MissingFilter, cells, filter)
			}
			want.LostCells += uint64(cells)
			want.LostFilter += uint64(filter)
			d := SingleDecode(fs)
			checkRecords(rt, r, &d)
		}
		got := a.Stats()
		if got.Malformed != want.Malformed || got.LostCells != want.LostCells || got.LostFilter != want.LostFilter ||
			got.Chunks+got.Late+got.Malformed != uint64(len(sent)) || got.Complete+got.Flushed != uint64(len(out)) || a.Held() != 0 {
			rt.Fatalf("Stats = %+v of %d chunks, %v in use; want %+v, all accounted for", got, len(sent), a.Held(), want)
		}
	})
}

// script adds chunks of small flowsets and reports what came out.
type script struct {
	*testing.T
	a *Assembler
}

func (s script) add(now time.Duration, sw model.NodeID, slot uint32, chunks ...int) (out []uint32) {
	s.Helper()
	all := small(s.T, sw, slot).chunks(s.T, 400)
	var sets []*Flowset
	for _, i := range chunks {
		var err error
		if sets, err = s.a.AddChunk(model.Time(now), all[i], sets); err != nil {
			s.Fatal(err)
		}
	}
	for _, fs := range sets {
		out = append(out, fs.Slot)
	}
	return out
}

func TestAssembleGivesOutInTime(t *testing.T) {
	a, err := NewAssembler(Config{Timeout: 20 * time.Millisecond, MaxOpen: 2, MaxMemory: model.MB, MaxCells: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := script{t, a} // a flowset has chunks 0 (filter), 1, 2 and 3 (cells)
	expect := func(what string, got []uint32, want ...uint32) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s gave out slots (-want +got):\n%s", what, diff)
		}
	}
	expect("a part", s.add(0, 1, 1, 3, 0))
	expect("the rest", s.add(1, 1, 1, 1, 2), 1)
	expect("a late chunk", s.add(2, 1, 1, 2))
	expect("two parts", append(s.add(3, 1, 2, 0), s.add(4, 1, 3, 0)...))
	expect("a third slot of the same switch", s.add(5, 1, 4, 0), 2)
	expect("a slot of another switch", s.add(6, 2, 9, 0))
	var slots []uint32
	for _, fs := range a.Expire(model.Time(20*time.Millisecond+4), nil) {
		slots = append(slots, fs.Slot)
	}
	expect("time", slots, 3)
	slots = nil
	for _, fs := range a.Flush(nil) {
		slots = append(slots, fs.Slot)
	}
	expect("Flush", slots, 4, 9)
	want := Stats{Chunks: 8, Late: 1, Complete: 1, TimedOut: 1, Evicted: 1, Flushed: 2, LostCells: 120}
	if diff := cmp.Diff(want, a.Stats()); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

func TestAssembleIsBounded(t *testing.T) {
	r := small(t, 1, 1)
	size := sizeOf(&r.header) + pendingSize
	a, err := NewAssembler(Config{Timeout: time.Second, MaxOpen: 100, MaxMemory: 3 * size, MaxCells: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var out []*Flowset
	for slot := range uint32(10) {
		if out, err = a.AddChunk(0, small(t, 1, slot).chunks(t, 400)[0], out); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.Stats().Dropped; got != 7 || len(out) != 0 || a.Held() != 3*size {
		t.Errorf("10 flowsets in the memory of 3: %d dropped, %d given out, %v in use; want 7, 0, %v", got, len(out), a.Held(), 3*size)
	}

	for name, tc := range map[string]struct {
		change func(*flowset.Header)
		want   error
	}{
		"2³⁰ cells":        {func(h *flowset.Header) { h.TableCells = 1 << 30 }, ErrTooLarge},
		"100 filter bits":  {func(h *flowset.Header) { h.FilterBits = 100 }, ErrGeometry},
		"an open one, but": {func(h *flowset.Header) { h.Slot, h.Counts.Flows = 9, 1 }, ErrConflict},
	} {
		h := r.header
		h.Slot = 50
		tc.change(&h)
		b := flowset.Chunk{Header: h, Section: flowset.Filter, Data: []byte{1}}.AppendTo(nil)
		if _, err := a.AddChunk(0, b, nil); !errors.Is(err, tc.want) {
			t.Errorf("Add(%s) = %v; want %v", name, err, tc.want)
		}
	}
	if s := a.Stats(); s.Refused != 2 || s.Conflicts != 1 {
		t.Errorf("%d refused, %d in conflict; want 2, 1", s.Refused, s.Conflicts)
	}
}

func TestConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"timeout":    {func(c *Config) { c.Timeout = 0 }, "flows: timeout 0s, want more than 0"},
		"max open":   {func(c *Config) { c.MaxOpen = 0 }, "flows: max open 0, want at least 1"},
		"max cells":  {func(c *Config) { c.MaxCells = 0 }, "flows: max cells 0, want at least 1"},
		"max memory": {func(c *Config) { c.MaxMemory = -1 }, "flows: max memory -1B, want more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tc.change(&cfg)
			if _, err := NewAssembler(cfg); err == nil || err.Error() != tc.want {
				t.Errorf("NewAssembler = %v; want %s", err, tc.want)
			}
		})
	}
}

// FuzzAssemble feeds bytes that may be anything and decodes what comes out.
func FuzzAssemble(f *testing.F) {
	for _, b := range small(f, 1, 1).chunks(f, 400) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := NewAssembler(Config{Timeout: 1, MaxOpen: 1, MaxMemory: model.MB, MaxCells: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := a.AddChunk(0, b, nil)
		// Seal it anew, so that the checksum does not keep mutations out.
		if len(b) > 4 {
			out, _ = a.AddChunk(0, flowset.Seal(append([]byte(nil), b[:len(b)-4]...), 0), out)
		}
		for _, fs := range a.Flush(out) {
			if d := SingleDecode(fs); d.Undecoded > fs.Counts.Flows {
				t.Errorf("%d of %d flows undecoded", d.Undecoded, fs.Counts.Flows)
			}
		}
	})
}
