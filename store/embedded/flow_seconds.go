package embedded

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// flowSeconds has the sums of flows and of their losses in each of the newest seconds:
// what a list of flows adds up, so that it reads rows only of the seconds that its
// range cuts. One goroutine adds and removes; any number read views.
type flowSeconds struct {
	limit int // bytes
	now   atomic.Pointer[secondsView]

	// Flows that have sums, and the indices that none of them has.
	flows map[flowName]*summedFlow
	free  []int
	// Of the batch that is being added.
	records []secondRecord
	lost    []secondLoss
}

// flowName is what makes two records of the same flow.
type flowName struct {
	key      model.FlowKey
	src, dst string
}

// summedFlow is a flow that has sums.
type summedFlow struct {
	flowName
	text  string // as stored; orders flows with equal sums
	index int    // below secondsView.flows; no other flow of a view has it
	rows  int    // in all seconds
}

// secondsView is an immutable snapshot.
// Invariant: it has every record of the store from begin on.
type secondsView struct {
	begin   int64
	seq     int64 // the highest sequence number of its records
	flows   int   // above the index of each flow
	bytes   int
	seconds []*flowSecond // in order
}

// flowSecond is the sums of one second.
type flowSecond struct {
	begin       int64
	first, last int64 // times of its records
	seq         int64 // the highest of its records
	rows        []secondRow
	losses      []secondLoss
}

// secondRow is the sums of a flow with one path in a second. Rows are in the order of
// the indices of flows, then of the numbers of paths.
type secondRow struct {
	flow           *summedFlow
	path           *numberedPath
	packets, bytes uint64
	samples        uint64
	lastSeq        int64
	lastPackets    uint64
	first, last    uint32 // nanoseconds in the second
	slots          uint32
}

// secondLoss is the losses of a flow between two nodes in a second.
type secondLoss struct {
	flow     model.FlowKey
	from, to string
	packets  uint64
	begin    int64 // of the second
	at, seq  int64 // of the record, while a batch is added
}

// secondRecord is a record of a batch.
type secondRecord struct {
	begin, at, seq int64
	row            secondRow
}

// About the sizes in memory, in bytes.
const (
	secondRowSize  = 72
	secondLossSize = 120
	summedFlowSize = 320
)

// newFlowSeconds begins after the newest record that is stored. Without memory it has
// no second.
func newFlowSeconds(limit model.Bytes, newest int64) *flowSeconds {
	s := &flowSeconds{limit: int(limit), flows: map[flowName]*summedFlow{}}
	begin := int64(math.MinInt64)
	switch {
	case limit <= 0:
		begin = math.MaxInt64
	case newest > begin:
		begin = store.FloorStep(newest, store.Second) + int64(store.Second)
	}
	s.now.Store(&secondsView{begin: begin})
	return s
}

func (s *flowSeconds) view() *secondsView { return s.now.Load() }

// addBatch adds a committed batch, with the path of each flow record; seq is the
// sequence number before the first of them, and the losses follow.
func (s *flowSeconds) addBatch(b *record.Batch, paths []*numberedPath, seq int64) {
	next := *s.now.Load()
	s.records, s.lost = s.records[:0], s.lost[:0]
	for i := range b.Flows {
		seq++
		r := &b.Flows[i]
		at := r.Time.UnixNano()
		begin := store.FloorStep(at, store.Second)
		if at < next.begin {
			continue
		}
		f := s.flow(r, &next)
		in := uint32(at - begin)
		s.records = append(s.records, secondRecord{begin, at, seq, secondRow{
			flow: f, path: paths[i], packets: r.Packets, bytes: r.Bytes, lastSeq: seq, lastPackets: r.Packets, samples: r.Samples, first: in, last: in, slots: 1,
		}})
	}
	for i := range b.Losses {
		seq++
		l := &b.Losses[i]
		if at := l.Time.UnixNano(); at >= next.begin {
			s.lost = append(s.lost, secondLoss{l.Flow, l.From, l.To, l.Packets, store.FloorStep(at, store.Second), at, seq})
		}
	}
	next.seq = seq
	slices.SortFunc(s.records, func(a, b secondRecord) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), a.row.compare(&b.row), cmp.Compare(a.seq, b.seq))
	})
	slices.SortFunc(s.lost, func(a, b secondLoss) int { return cmp.Or(cmp.Compare(a.begin, b.begin), a.compare(&b)) })
	next.seconds = slices.Clone(next.seconds)
	for records := s.records; len(records) > 0; {
		n := sort.Search(len(records), func(i int) bool { return records[i].begin > records[0].begin })
		next.addRecords(records[:n])
		records = records[n:]
	}
	for lost := s.lost; len(lost) > 0; {
		n := sort.Search(len(lost), func(i int) bool { return lost[i].begin > lost[0].begin })
		next.addLosses(lost[:n])
		lost = lost[n:]
	}
	for len(next.seconds) > 0 && next.bytes+summedFlowSize*len(s.flows) > s.limit {
		s.evictOldest(&next)
	}
	clear(s.records) // they hold flows and paths
	s.now.Store(&next)
}

// flow returns the flow of a record.
func (s *flowSeconds) flow(r *record.FlowSlot, v *secondsView) *summedFlow {
	name := flowName{r.Flow, r.Src, r.Dst}
	f := s.flows[name]
	if f == nil {
		f = &summedFlow{flowName: name, text: r.Flow.String(), index: v.flows}
		if n := len(s.free); n > 0 {
			f.index, s.free = s.free[n-1], s.free[:n-1]
		} else {
			v.flows++
		}
		s.flows[name] = f
	}
	return f
}

// second returns a copy of the second that begins then, which the view has from now on.
func (v *secondsView) second(begin int64) *flowSecond {
	at, there := slices.BinarySearchFunc(v.seconds, begin, func(s *flowSecond, ns int64) int { return cmp.Compare(s.begin, ns) })
	if !there {
		v.seconds = slices.Insert(v.seconds, at, &flowSecond{begin: begin, first: math.MaxInt64, last: math.MinInt64})
		return v.seconds[at]
	}
	s := *v.seconds[at]
	v.seconds[at] = &s
	return &s
}

// include notes a record.
func (s *flowSecond) include(at, seq int64) {
	s.first, s.last, s.seq = min(s.first, at), max(s.last, at), max(s.seq, seq)
}

// addRecords adds records of one second, in order.
func (v *secondsView) addRecords(records []secondRecord) {
	s := v.second(records[0].begin)
	old := s.rows
	s.rows = make([]secondRow, 0, max(len(old), len(records)))
	for i := range records {
		r := &records[i]
		s.include(r.at, r.seq)
		for len(old) > 0 && old[0].compare(&r.row) < 0 {
			s.rows, old = append(s.rows, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].compare(&r.row) == 0 {
			s.rows, old = append(s.rows, old[0]), old[1:]
		} else if n := len(s.rows); n == 0 || s.rows[n-1].compare(&r.row) != 0 {
			r.row.flow.rows++
			v.bytes += secondRowSize
			s.rows = append(s.rows, r.row)
			continue
		}
		s.rows[len(s.rows)-1].add(&r.row)
	}
	s.rows = append(s.rows, old...)
}

// addLosses adds losses of one second, in order.
func (v *secondsView) addLosses(lost []secondLoss) {
	s := v.second(lost[0].begin)
	v.bytes -= secondLossSize * len(s.losses)
	all := append(slices.Clone(s.losses), lost...)
	slices.SortFunc(all, func(a, b secondLoss) int { return a.compare(&b) })
	s.losses = all[:0]
	for i := range all {
		if n := len(s.losses); n > 0 && s.losses[n-1].compare(&all[i]) == 0 {
			s.losses[n-1].packets = addCapped(s.losses[n-1].packets, all[i].packets)
		} else {
			s.losses = append(s.losses, all[i])
		}
	}
	for i := range lost {
		s.include(lost[i].at, lost[i].seq)
	}
	v.bytes += secondLossSize * len(s.losses)
}

func (r *secondRow) compare(o *secondRow) int {
	return cmp.Or(cmp.Compare(r.flow.index, o.flow.index), cmp.Compare(r.path.id, o.path.id))
}

// add adds a later record.
func (r *secondRow) add(o *secondRow) {
	r.packets, r.bytes, r.slots = addCapped(r.packets, o.packets), addCapped(r.bytes, o.bytes), r.slots+o.slots
	r.samples = addCapped(r.samples, o.samples)
	r.first = min(r.first, o.first)
	if o.last >= r.last {
		r.last, r.lastSeq, r.lastPackets = o.last, o.lastSeq, o.lastPackets
	}
}

func (l *secondLoss) compare(o *secondLoss) int {
	return cmp.Or(l.flow.Compare(o.flow), cmp.Compare(l.from, o.from), cmp.Compare(l.to, o.to))
}

// evictOldest removes the oldest second; those before it are in the tables alone.
func (s *flowSeconds) evictOldest(v *secondsView) {
	old := v.seconds[0]
	v.seconds = v.seconds[1:]
	v.begin = old.begin + int64(store.Second)
	v.bytes -= secondRowSize*len(old.rows) + secondLossSize*len(old.losses)
	for i := range old.rows {
		f := old.rows[i].flow
		if f.rows--; f.rows == 0 {
			delete(s.flows, f.flowName)
			s.free = append(s.free, f.index)
		}
	}
}

// removeBefore removes seconds that the tables no longer have in full.
func (s *flowSeconds) removeBefore(before int64) {
	next := *s.now.Load()
	next.seconds = slices.Clone(next.seconds)
	for len(next.seconds) > 0 && next.seconds[0].begin < before {
		s.evictOldest(&next)
	}
	s.now.Store(&next)
}
