package dta

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

// openLists opens lists.
func openLists(lists, capacity, batch, entry int) (*list.Table, error) {
	cfg := list.DefaultConfig(lists, capacity)
	cfg.Batch, cfg.Classes[0].Entry = batch, entry
	t, err := list.Open("", cfg)
	if err == nil {
		t.Region().Prefault()
	}
	return t, err
}

// appendRun is lists that entries are appended to. spread returns the list of the i-th batch.
type appendRun struct {
	lists, capacity, batch, entry int
	spread                        func(i int) uint32
}

func alone(int) uint32 { return 0 }

// timing is works whose rates are compared, and the memory that they use.
type timing struct {
	o      claim.Options
	works  []claim.Timed
	counts []int // entries of each work
	open   []*list.Table
	turns  int   // rounds; 0: the usual number
	err    error // the first
}

// rounds is how often each work of a timing is timed.
const rounds = 5

// add adds a work on a number of entries, and returns its number. prepare runs before
// each round, and may be nil.
func (m *timing) add(entries int, prepare func(), work func() error) int {
	m.works = append(m.works, claim.Timed{Prepare: prepare, Work: func() {
		if err := work(); m.err == nil {
			m.err = err
		}
	}})
	m.counts = append(m.counts, entries)
	return len(m.works) - 1
}

// rates times all works and returns millions of entries per second of each: of the first in
// its fastest round, and of the others by how many times faster they were in the same
// rounds. So ratios of rates are medians, which a busy machine changes little.
func (m *timing) rates() ([]float64, error) {
	defer func() {
		for _, t := range m.open {
			_ = t.Region().Close()
		}
	}()
	if m.err != nil {
		return nil, m.err
	}
	turns := cmp.Or(m.turns, rounds)
	if m.o.Broken() {
		turns = 3
	}
	times := claim.Alternate(turns, m.works...)
	out := make([]float64, len(m.works))
	fastest := millions(m.counts[0], slices.Min(times[0]))
	for i := range out {
		each := float64(m.counts[i]) / float64(m.counts[0])
		out[i] = fastest * each * claim.TimesFaster(times[i], times[0])
	}
	return out, m.err
}

// lists opens the lists of a run.
func (m *timing) lists(r appendRun) *list.Table {
	t, err := openLists(r.lists, r.capacity, batchOf(m.o, r.batch), r.entry)
	if err != nil {
		m.err = err
		return nil
	}
	m.open = append(m.open, t)
	return t
}

// addMemory adds writing ready-made batches into memory.
func (m *timing) addMemory(t *list.Table, r appendRun) int {
	if m.err != nil {
		return 0
	}
	batches := m.o.Pick(1<<22, 1<<20)
	if m.o.Broken() {
		batches = 1 << 19
	}
	ready, w := make([]byte, r.entry*t.Config().Batch), t.Writer(0)
	return m.add(batches*t.Config().Batch, nil, func() (err error) {
		for i := 0; i < batches && err == nil; i++ {
			ready[0] = byte(i)
			err = w.Append(r.spread(i), ready)
		}
		return err
	})
}

// addTranslator adds reports that go through the translator, which makes the batches.
func (m *timing) addTranslator(t *list.Table, r appendRun) int {
	if m.err != nil {
		return 0
	}
	entries := m.o.Pick(1<<22, 1<<19)
	if m.o.Broken() {
		entries = 1 << 18
	}
	batch := t.Config().Batch
	out, err := translate.NewLocalWriter(&translate.Memory{Lists: []*list.Table{t}}, 0, false, nil)
	if err != nil {
		m.err = err
		return 0
	}
	tr, err := translate.New(translate.DefaultConfig(), out.Plan, out)
	if err != nil {
		m.err = err
		return 0
	}
	const together = 64 // reports of a datagram
	data, reports := make([]byte, r.entry), make([]wire.Report, together)
	return m.add(entries, nil, func() error {
		for i := 0; i < entries; i += together {
			for j := range reports {
				reports[j] = wire.Report{Primitive: wire.Append, List: wire.ListID(r.spread((i + j) / batch)), Data: data}
			}
			tr.Put(0, reports)
		}
		return nil
	})
}

// addBareLines adds lines of 16 entries that are written to the rings of lists drawn
// at random, without any other work: each visit of a list writes its next line. With
// heads it also counts the entries in the list's head.
func (m *timing) addBareLines(lists, capacity int, heads bool) int {
	t := m.lists(appendRun{lists: lists, capacity: capacity, batch: ofSixteen, entry: 4})
	if m.err != nil {
		return 0
	}
	ring, rng := capacity*4/8, claim.Rand(m.o.Seed, 0)
	words := t.Region().Words()
	rings := words[len(words)-lists*ring:]
	order := make([]int, 1<<16)
	for i := range order {
		order[i] = rng.IntN(lists)
	}
	batches, ready := m.o.Pick(1<<22, 1<<20), new([64]byte)
	return m.add(batches*ofSixteen, nil, func() error {
		for i := range batches {
			at := order[i&(len(order)-1)]
			to := rings[at*ring+i/len(order)*8%ring:]
			region.StoreLine((*[8]uint64)(to), ready, &to[0])
			if heads {
				region.Publish(&words[at], words[at]+ofSixteen)
			}
		}
		return nil
	})
}
