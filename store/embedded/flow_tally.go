package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// flowTally adds up the flows of a range from the seconds in memory. It reads rows of
// the tables only of seconds that the range cuts.
type flowTally struct {
	*flowWalk
	view *secondsView

	whole    []*flowSecond
	cut      []edgeSum // of the other seconds
	lost     map[model.FlowKey]uint64
	partial  bool
	flows    []flowAcc // by the index of a flow
	edges    map[flowName]*flowAcc
	matching []*flowAcc
}

// edgeSum is the sums of a flow with one path in a part of a second.
type edgeSum struct {
	flowName
	pathSum
}

// flowAcc is the sums of a flow that its order needs.
type flowAcc struct {
	flowName
	text                        string
	state                       accState
	place                       int // in the page, from 1; 0: not in it
	first, end                  int64
	slots, packets, bytes, lost uint64
	rank                        uint64
}

type accState byte

const (
	accUnseen accState = iota
	accMatches
	accExcluded // by its key
)

// newTally returns nil if memory does not have the whole range.
func (w *flowWalk) newTally(ctx context.Context, view *secondsView) (*flowTally, error) {
	first, last := store.TimeRange(w.query)
	if first < view.begin {
		return nil, nil
	}
	t := &flowTally{flowWalk: w, view: view, lost: map[model.FlowKey]uint64{}, flows: make([]flowAcc, view.flows), edges: map[flowName]*flowAcc{}}
	from := sort.Search(len(view.seconds), func(i int) bool { return view.seconds[i].last >= first })
	var cuts []flowCut
	for _, s := range view.seconds[from:] {
		if s.first > last {
			break
		}
		if s.first >= first && s.last <= last && s.seq <= w.bound {
			t.whole = append(t.whole, s)
			continue
		}
		c := flowCut{timeBounds{max(first, s.begin), min(last, s.begin+int64(store.Second)-1)}, len(s.rows) > 0, len(s.losses) > 0}
		if n := len(cuts); n > 0 && cuts[n-1].newest+1 == c.oldest {
			cuts[n-1] = flowCut{cuts[n-1].union(c.timeBounds), cuts[n-1].flows || c.flows, cuts[n-1].losses || c.losses}
		} else {
			cuts = append(cuts, c)
		}
	}
	for _, c := range cuts {
		if err := t.readCut(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, s := range t.whole {
		for i := range s.losses {
			l := &s.losses[i]
			if w.query.Node == "" || l.from == w.query.Node || l.to == w.query.Node {
				t.lost[l.flow] = addCapped(t.lost[l.flow], l.packets)
			}
		}
	}
	return t, nil
}

// has reports whether a row is of the node asked for.
func (t *flowTally) has(f *flowName, switches []string) bool {
	node := t.query.Node
	return node == "" || f.src == node || f.dst == node || slices.Contains(switches, node)
}

// flowCut is a part of a second, or of several in a row, whose records are added up one
// by one.
type flowCut struct {
	timeBounds
	flows, losses bool // whether there are records
}

// readCut adds up the records of a cut.
func (t *flowTally) readCut(ctx context.Context, c flowCut) error {
	where := &conditions{}
	where.between(c.oldest, c.newest)
	where.and(fmt.Sprintf(`seq <= %d`, t.bound))
	if c.flows {
		list, texts, err := t.readPathSums(ctx, `SELECT flow_id, path_id, `+pathSumColumns+` FROM flow_rows WHERE `+where.sql()+` GROUP BY flow_id, path_id`, nil)
		if err != nil {
			return err
		}
		for _, p := range list {
			f := texts.flows[p.flow]
			t.partial = t.partial || texts.paths[p.path].partial
			if e := (edgeSum{flowName{f.key, f.src, f.dst}, p}); t.has(&e.flowName, p.switches) {
				t.cut = append(t.cut, e)
			}
		}
	}
	if !c.losses {
		return nil
	}
	if t.query.Node != "" {
		where.and(`from_node = ? OR to_node = ?`, t.query.Node, t.query.Node)
	}
	query := fmt.Sprintf(`SELECT flow, %s FROM losses WHERE %s GROUP BY flow`, sumOf(`packets`), where.sql())
	return t.queryRows(ctx, query, where.args, func(rows *sql.Rows) error {
		var flow model.FlowKey
		var lost uint64
		if err := rows.Scan(flowText{&flow}, &lost); err != nil {
			return err
		}
		t.lost[flow] = addCapped(t.lost[flow], lost)
		return nil
	})
}

// sum adds up the flows that match. A filter about keys alone is applied before, any
// other needs all about each flow.
func (t *flowTally) sum(order record.FlowSort) {
	match := t.filter.Match
	keys := t.filter.Where == nil || onlyKeys(t.filter.Where)
	if t.filter.Where == nil {
		match = nil
	}
	excluded := func(f *flowName) bool {
		return keys && match != nil && !match(&record.FlowSum{Flow: f.key, Src: f.src, Dst: f.dst})
	}
	for _, s := range t.whole {
		for i := range s.rows {
			r := &s.rows[i]
			t.partial = t.partial || r.path.partial
			a := &t.flows[r.flow.index]
			if a.state == accUnseen {
				if a.begin(&r.flow.flowName, r.flow.text); excluded(&a.flowName) {
					a.state = accExcluded
				}
			}
			if a.state == accMatches && t.has(&a.flowName, r.path.switches) {
				a.add(s.begin+int64(r.first), s.begin+int64(r.last)+r.path.slot, uint64(r.slots), r.packets, r.bytes)
			}
		}
	}
	for i := range t.cut {
		e := &t.cut[i]
		a := t.edges[e.flowName]
		if a == nil {
			a = &flowAcc{}
			if a.begin(&e.flowName, e.key.String()); excluded(&a.flowName) {
				a.state = accExcluded
			}
			t.edges[e.flowName] = a
		}
		if a.state == accMatches {
			a.add(e.first.UnixNano(), e.last.Time+int64(e.slot), e.slots, e.packets, e.bytes)
		}
	}
	take := func(a *flowAcc) {
		if a.state == accMatches && a.slots > 0 {
			if len(t.lost) > 0 {
				a.lost = t.lost[a.key]
			}
			t.matching = append(t.matching, a)
		}
	}
	for i := range t.flows {
		a := &t.flows[i]
		if len(t.edges) > 0 && a.state != accUnseen {
			if e := t.edges[a.flowName]; e != nil {
				if e.slots > 0 {
					a.add(e.first, e.end, e.slots, e.packets, e.bytes)
				}
				delete(t.edges, a.flowName)
			}
		}
		take(a)
	}
	for _, a := range t.edges {
		take(a)
	}
	if match != nil && !keys {
		t.matchSums(match)
	}
	for _, a := range t.matching {
		a.rank = accOrders[order](a)
	}
}

// matchSums keeps the flows whose sums match.
func (t *flowTally) matchSums(match func(*record.FlowSum) bool) {
	sums := t.details(t.matching)
	kept := t.matching[:0]
	for i, a := range t.matching {
		if match(&sums[i]) {
			kept = append(kept, a)
		}
	}
	t.matching = kept
}

func (a *flowAcc) begin(name *flowName, text string) {
	a.flowName, a.text, a.state, a.first, a.end = *name, text, accMatches, math.MaxInt64, math.MinInt64
}

func (a *flowAcc) add(first, end int64, slots, packets, bytes uint64) {
	a.first, a.end = min(a.first, first), max(a.end, end)
	a.slots += slots
	a.packets, a.bytes = addCapped(a.packets, packets), addCapped(a.bytes, bytes)
}

// accOrders are numbers in the orders of flows.
var accOrders = map[record.FlowSort]func(*flowAcc) uint64{
	record.ByBytes:   func(a *flowAcc) uint64 { return a.bytes },
	record.ByPackets: func(a *flowAcc) uint64 { return a.packets },
	record.ByLost:    func(a *flowAcc) uint64 { return a.lost },
	record.ByLostShare: func(a *flowAcc) uint64 {
		return math.Float64bits((&record.FlowSum{Packets: a.packets, Lost: a.lost}).LostShare())
	},
	record.ByRate: func(a *flowAcc) uint64 {
		return math.Float64bits((&record.FlowSum{Bytes: a.bytes, First: time.Unix(0, a.first), Last: time.Unix(0, a.end)}).Rate())
	},
	record.ByDuration: func(a *flowAcc) uint64 { return uint64(a.end-a.first) ^ 1<<63 },
	record.ByNewest:   func(a *flowAcc) uint64 { return uint64(a.end) ^ 1<<63 },
}

// compare orders flows, those with the largest sum first.
func (a *flowAcc) compare(o *flowAcc) int {
	return cmp.Or(cmp.Compare(o.rank, a.rank), strings.Compare(a.text, o.text), strings.Compare(a.src, o.src), strings.Compare(a.dst, o.dst))
}

// page returns the flows from place skip on, and whether more follow.
func (t *flowTally) page(skip, limit int) (list []*flowAcc, more bool) {
	all := largest(t.matching, skip+limit+1, (*flowAcc).compare)
	list = all[min(skip, len(all)):]
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

func (t *flowTally) totals() record.FlowTotals {
	sums := record.FlowTotals{Flows: uint64(len(t.matching)), FlowsKnown: true}
	for _, a := range t.matching {
		sums.Slots += a.slots
		sums.Packets, sums.Bytes, sums.Lost = addCapped(sums.Packets, a.packets), addCapped(sums.Bytes, a.bytes), addCapped(sums.Lost, a.lost)
	}
	return sums
}

// details returns all about flows, in their order.
func (t *flowTally) details(list []*flowAcc) []record.FlowSum {
	paths := make([][]pathSum, len(list))
	edges := make(map[flowName]int, len(list))
	for i, a := range list {
		a.place = i + 1
		edges[a.flowName] = i
	}
	for _, s := range t.whole {
		for i := range s.rows {
			r := &s.rows[i]
			if place := t.flows[r.flow.index].place; place > 0 && t.has(&r.flow.flowName, r.path.switches) {
				paths[place-1] = addPath(paths[place-1], r.pathSum(s.begin))
			}
		}
	}
	for i := range t.cut {
		if at, in := edges[t.cut[i].flowName]; in {
			paths[at] = addPath(paths[at], t.cut[i].pathSum)
		}
	}
	out := make([]record.FlowSum, len(list))
	for i, a := range list {
		a.place = 0
		out[i] = newFlowSum(&numberedFlow{key: a.key, src: a.src, dst: a.dst}, paths[i], a.lost)
	}
	return out
}

func (r *secondRow) pathSum(begin int64) pathSum {
	return pathSum{
		path: r.path.id, slots: uint64(r.slots), packets: r.packets, bytes: r.bytes, samples: r.samples, first: time.Unix(0, begin+int64(r.first)).UTC(),
		last: recent.Position{Time: begin + int64(r.last), Seq: r.lastSeq}, lastPackets: r.lastPackets,
		switches: r.path.switches, exact: r.path.exact, slot: time.Duration(r.path.slot),
	}
}

// addPath adds the sums of a path to those of the same.
func addPath(list []pathSum, p pathSum) []pathSum {
	for i := range list {
		if o := &list[i]; o.path == p.path {
			o.slots += p.slots
			o.packets, o.bytes = addCapped(o.packets, p.packets), addCapped(o.bytes, p.bytes)
			o.samples = addCapped(o.samples, p.samples)
			if p.first.Before(o.first) {
				o.first = p.first
			}
			if p.last.Compare(o.last) > 0 {
				o.last, o.lastPackets = p.last, p.lastPackets
			}
			return list
		}
	}
	return append(list, p)
}

// largest returns the first n of a list in an order.
func largest[T any](list []T, n int, compare func(a, b T) int) []T {
	if len(list) <= n {
		slices.SortFunc(list, compare)
		return list
	}
	best := append(make([]T, 0, 2*n), list[:n]...)
	slices.SortFunc(best, compare)
	for _, x := range list[n:] {
		if compare(x, best[n-1]) >= 0 {
			continue
		}
		if best = append(best, x); len(best) == cap(best) {
			slices.SortFunc(best, compare)
			best = best[:n]
		}
	}
	slices.SortFunc(best, compare)
	return best[:n]
}
