package siege

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// bank is what attackers have overheard: honest datagrams and their reports.
type bank struct {
	mu        sync.Mutex
	datagrams [][]byte
	from      []model.NodeID
	reports   [numLists][][]byte // by kind of list
	next      int
}

// The kinds of lists.
const (
	flowsets = iota
	labels
	mirrors
	epochs
	requests
	numLists
)

// bankSize is how many datagrams, and how many reports of a kind, a bank has.
const bankSize = 64

// listKind is the kind of a list.
func listKind(p *control.ListPlan, id dta.ListID) int {
	switch {
	case id < p.Labels.First:
		return flowsets
	case id < p.Mirrors.First:
		return labels
	case id < p.Epochs.First:
		return mirrors
	case id < p.DiagnosisRequests.First:
		return epochs
	}
	return requests
}

// overhear puts a datagram into the bank: sent is what went over the wire, reports
// is the same in version 1.
func (b *bank) overhear(p *control.ListPlan, from model.NodeID, sent, reports []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := func(list [][]byte, data []byte) [][]byte {
		data = append([]byte(nil), data...)
		if len(list) < bankSize {
			return append(list, data)
		}
		list[b.next%bankSize] = data
		return list
	}
	if len(b.from) < bankSize {
		b.from = append(b.from, from)
	} else {
		b.from[b.next%bankSize] = from
	}
	b.datagrams = keep(b.datagrams, sent)
	var r dta.Reader
	_ = r.Reset(reports) // Next says so
	for rep := (dta.Report{}); r.Next(&rep); {
		k := listKind(p, rep.List)
		b.reports[k] = keep(b.reports[k], rep.Data)
	}
	b.next++
}

// hostile makes datagrams of attackers. The same seed and the same bank make the
// same ones.
type hostile struct {
	r      *rand.Rand
	fabric *topo.Fabric
	clock  *clock
	lists  control.ListPlan
	bank   *bank
	seq    map[model.NodeID]dta.Seq
	n      int // datagrams made
	// insider is a reporter that attackers have taken over. They lie as it, from its
	// address and with its key; 0: they have none, and lie as anybody.
	insider model.NodeID
}

func newHostile(seed uint64, s *service, b *bank) *hostile {
	return &hostile{
		r: rand.New(rand.NewPCG(seed, 1)), fabric: s.fabric, clock: s.clock, lists: s.lists, bank: b,
		seq: map[model.NodeID]dta.Seq{},
	}
}

// victim is a reporter that attackers pretend to be.
func (h *hostile) victim() model.NodeID {
	if h.insider != 0 {
		return h.insider
	}
	nodes := h.fabric.Nodes()
	return nodes[h.r.IntN(len(nodes))].ID
}

// victimSwitch is one of the switches.
func (h *hostile) victimSwitch() model.NodeID {
	if h.insider != 0 {
		return h.insider
	}
	list := h.fabric.Switches()
	return list[h.r.IntN(len(list))]
}

// overheard is a report of a kind, or nil if none was overheard.
func (h *hostile) overheard(kind int) []byte {
	h.bank.mu.Lock()
	defer h.bank.mu.Unlock()
	list := h.bank.reports[kind]
	if len(list) == 0 {
		return nil
	}
	return append([]byte(nil), list[h.r.IntN(len(list))]...)
}

// datagram has one report in it, with the reporter's next sequence number.
func (h *hostile) datagram(reporter model.NodeID, list dta.ListID, data []byte) []byte {
	seq, known := h.seq[reporter]
	if !known {
		seq = 1
	}
	w := dta.NewWriter(reporter, seq)
	w.Begin(make([]byte, dta.HeaderSize+64+len(data)))
	if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: list, Data: data}); err != nil {
		panic(err) // the attackers' own mistake
	}
	b := w.Finish()
	h.seq[reporter] = w.Seq()
	return b
}

// time is one that is true, or absurd in one of five cases.
func (h *hostile) time() model.Time {
	switch h.r.IntN(10) {
	case 0:
		return model.TimeOf(time.Date(1677, 11, 1, 0, 0, 0, 0, time.UTC))
	case 1:
		return model.TimeOf(time.Date(2262, 4, 1, 0, 0, 0, 0, time.UTC))
	case 2:
		return model.Time(h.r.Int64())
	case 3:
		return -model.Time(h.r.Int64())
	}
	return h.clock.model().Add(time.Duration(h.r.IntN(200)-100) * time.Millisecond)
}

// node is an id: of a node, next to one, or any.
func (h *hostile) node() model.NodeID {
	switch h.r.IntN(4) {
	case 0:
		return model.NodeID(h.r.Uint32())
	case 1:
		return model.NodeID(len(h.fabric.Nodes()) + h.r.IntN(5000))
	}
	return h.victim()
}

// number is any, small or enormous.
func (h *hostile) number() uint64 {
	return h.r.Uint64() >> h.r.IntN(64)
}

// bytes are random.
func (h *hostile) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(h.r.Uint32())
	}
	return b
}

// flip changes some bytes.
func (h *hostile) flip(b []byte) []byte {
	for range 1 + h.r.IntN(4) {
		if len(b) > 0 {
			b[h.r.IntN(len(b))] = byte(h.r.Uint32())
		}
	}
	return b
}
