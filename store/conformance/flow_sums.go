package conformance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// flowOrders compare flows.
var flowOrders = map[record.FlowSort]func(a, b *record.FlowSum) int{
	record.ByBytes:     func(a, b *record.FlowSum) int { return cmp.Compare(a.Bytes, b.Bytes) },
	record.ByPackets:   func(a, b *record.FlowSum) int { return cmp.Compare(a.Packets, b.Packets) },
	record.ByLost:      func(a, b *record.FlowSum) int { return cmp.Compare(a.Lost, b.Lost) },
	record.ByLostShare: func(a, b *record.FlowSum) int { return cmp.Compare(a.LostShare(), b.LostShare()) },
	record.ByRate:      func(a, b *record.FlowSum) int { return cmp.Compare(a.Rate(), b.Rate()) },
	record.ByDuration:  func(a, b *record.FlowSum) int { return cmp.Compare(a.Duration(), b.Duration()) },
	record.ByNewest:    func(a, b *record.FlowSum) int { return a.Last.Compare(b.Last) },
}

// FlowSums answers as a store does. Of flows with equal sums the one that was stored
// first comes first.
func (t *Reference) FlowSums(_ context.Context, q record.FlowSumQuery) (a record.FlowSums, err error) {
	order, known := flowOrders[q.Sort]
	if !known {
		return a, fmt.Errorf("%w: order %q", store.ErrQuery, q.Sort)
	}
	a.Totals.FlowsKnown = true
	rows := t.sumFlows(q.From, q.To, q.Node, q.Filter)
	for i := range rows {
		a.Items = append(a.Items, rows[i].FlowSum)
		addTotals(&a.Totals, &rows[i].FlowSum)
	}
	slices.SortStableFunc(a.Items, func(x, y record.FlowSum) int { return order(&y, &x) })
	skip := 0
	if q.After != "" {
		if skip, err = strconv.Atoi(q.After); err != nil || skip > len(a.Items) {
			return record.FlowSums{}, fmt.Errorf("%w: after %q", store.ErrQuery, q.After)
		}
	}
	if a.Items = a.Items[skip:]; q.Limit > 0 && len(a.Items) > q.Limit {
		a.Items, a.Next = a.Items[:q.Limit], strconv.Itoa(skip+q.Limit)
	}
	a.Partial, a.KeptFrom, a.KeptTo = t.flowCoverage(q.From, q.To)
	return a, nil
}

func (t *Reference) flowCoverage(from, to time.Time) (partial bool, oldest, newest time.Time) {
	for i := range t.flows {
		r := &t.flows[i]
		partial = partial || r.Partial && within(r.Time, record.Query{From: from, To: to})
		if i == 0 || r.Time.Before(oldest) {
			oldest = r.Time
		}
		if i == 0 || r.Time.After(newest) {
			newest = r.Time
		}
	}
	return partial, oldest, newest
}

func addTotals(t *record.FlowTotals, s *record.FlowSum) {
	t.Flows++
	t.Slots += s.Slots
	t.Packets, t.Bytes, t.Lost = capped(t.Packets, s.Packets), capped(t.Bytes, s.Bytes), capped(t.Lost, s.Lost)
}

func capped(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// flowRows is a flow with its records, newest first, and losses.
type flowRows struct {
	record.FlowSum
	rows   []record.FlowSlot
	losses []record.Loss
}

// sumFlows adds up the flows of a range, in the order in which they were stored first.
func (t *Reference) sumFlows(from, to time.Time, node string, f record.FlowFilter) (list []flowRows) {
	type id struct {
		flow     model.FlowKey
		src, dst string
	}
	at := map[id]int{}
	q := record.Query{From: from, To: to, Node: node}
	for i := range t.flows {
		r := &t.flows[i]
		k := id{r.Flow, r.Src, r.Dst}
		n, known := at[k]
		if !known {
			n = len(list)
			at[k] = n
			list = append(list, flowRows{FlowSum: record.FlowSum{Flow: r.Flow, Src: r.Src, Dst: r.Dst}})
		}
		passed := slices.ContainsFunc(r.Path, func(h record.FlowHop) bool { return h.Switch == node })
		if within(r.Time, q) && (node == "" || r.Src == node || r.Dst == node || passed) {
			list[n].rows = append([]record.FlowSlot{*r}, list[n].rows...)
		}
	}
	for i := range list {
		s := &list[i]
		slices.SortStableFunc(s.rows, func(a, b record.FlowSlot) int { return b.Time.Compare(a.Time) })
		for _, l := range t.losses {
			if l.Flow == s.Flow && within(l.Time, q) && (node == "" || l.From == node || l.To == node) {
				s.losses = append(s.losses, l)
			}
		}
		s.sum()
	}
	return slices.DeleteFunc(list, func(s flowRows) bool {
		return s.Slots == 0 || f.Match != nil && !f.Match(&s.FlowSum)
	})
}

// sum fills in the sums.
func (s *flowRows) sum() {
	s.Exact = true
	paths := map[string]bool{}
	for i, r := range s.rows {
		var names []string
		for _, h := range r.Path {
			names = append(names, h.Switch)
			if !slices.Contains(s.Switches, h.Switch) {
				s.Switches = append(s.Switches, h.Switch)
			}
		}
		if i == 0 {
			s.Path = names
		}
		paths[strings.Join(names, "\x00")] = true
		s.First = r.Time // newest first
		if end := r.Time.Add(r.Slot); i == 0 || end.After(s.Last) {
			s.Last = end
		}
		s.Slots++
		s.Packets, s.Bytes = capped(s.Packets, r.Packets), capped(s.Bytes, r.Bytes)
		s.Exact = s.Exact && r.Exact
		s.Samples = capped(s.Samples, r.Samples)
		s.Hops = max(s.Hops, len(names))
	}
	s.Paths = len(paths)
	for _, l := range s.losses {
		s.Lost = capped(s.Lost, l.Packets)
	}
}

// FlowGroups answers as a store does. Of groups with equal sums the one whose name is
// less comes first.
func (t *Reference) FlowGroups(_ context.Context, q record.FlowGroupQuery) (a record.FlowGroups, err error) {
	groups := map[string]*record.FlowGroup{}
	steps := flowSteps(q)
	of := func(name string) *record.FlowGroup {
		if q.Merge != nil {
			name = q.Merge[name]
		}
		if groups[name] == nil {
			groups[name] = &record.FlowGroup{Name: name, Series: make([]uint64, steps)}
		}
		return groups[name]
	}
	a.Series = make([]uint64, steps)
	a.Totals.FlowsKnown = true
	flows := t.sumFlows(q.From, q.To, q.Node, q.Filter)
	for i := range flows {
		s := &flows[i]
		addTotals(&a.Totals, &s.FlowSum)
		in := map[string]bool{}
		for _, r := range s.rows {
			for _, name := range groupsOf(q, &r) {
				g := of(name)
				in[g.Name] = true
				g.Slots++
				g.Packets, g.Bytes = capped(g.Packets, r.Packets), capped(g.Bytes, r.Bytes)
				if steps > 0 {
					at := int(r.Time.Sub(q.From) / q.Step)
					g.Series[at] = capped(g.Series[at], r.Bytes)
				}
			}
			if steps > 0 {
				at := int(r.Time.Sub(q.From) / q.Step)
				a.Series[at] = capped(a.Series[at], r.Bytes)
			}
		}
		for name := range in {
			groups[name].Flows++
		}
	}
	for i := range flows {
		s := &flows[i]
		for _, l := range s.losses {
			for _, name := range lossGroups(q, s, &l) {
				if g := groups[name]; g != nil {
					g.Lost = capped(g.Lost, l.Packets)
				}
			}
		}
	}
	for _, g := range groups {
		a.Groups = append(a.Groups, *g)
	}
	value := func(g *record.FlowGroup) uint64 {
		switch q.Sort {
		case record.ByPackets:
			return g.Packets
		case record.ByLost:
			return g.Lost
		}
		return g.Bytes
	}
	slices.SortFunc(a.Groups, func(x, y record.FlowGroup) int {
		return cmp.Or(cmp.Compare(value(&y), value(&x)), cmp.Compare(x.Name, y.Name))
	})
	if q.Limit > 0 && len(a.Groups) > q.Limit {
		a.Groups, a.Omitted = a.Groups[:q.Limit], len(a.Groups)-q.Limit
	}
	a.Partial, a.KeptFrom, a.KeptTo = t.flowCoverage(q.From, q.To)
	return a, nil
}

func flowSteps(q record.FlowGroupQuery) int {
	if q.Step <= 0 {
		return 0
	}
	return int((q.To.Sub(q.From) + q.Step - 1) / q.Step)
}

// groupsOf are the groups of a record.
func groupsOf(q record.FlowGroupQuery, r *record.FlowSlot) []string {
	var names []string
	for _, h := range r.Path {
		names = append(names, h.Switch)
	}
	switch q.GroupBy {
	case record.GroupByHost:
		return []string{r.Src}
	case record.GroupByDstHost:
		return []string{r.Dst}
	case record.GroupByPath:
		return []string{strings.Join(names, " > ")}
	case record.GroupByLink:
		if r.Dst != "" && len(names) > 0 {
			names = append(names, r.Dst)
		}
		var links []string
		for i := 1; i < len(names); i++ {
			if l := names[i-1] + ">" + names[i]; !slices.Contains(links, l) {
				links = append(links, l)
			}
		}
		return links
	case record.GroupByClass:
		switch {
		case r.Flow.Proto == model.UDP && r.Flow.DstPort == 4791:
			return []string{"RoCEv2"}
		case r.Flow.Proto == model.TCP:
			return []string{"tcp"}
		case r.Flow.Proto == model.UDP:
			return []string{"udp"}
		}
		return []string{"other"}
	}
	for i := range q.Filter.Jobs {
		if j := &q.Filter.Jobs[i]; j.Has(r.Src, r.Flow.Src) && j.Has(r.Dst, r.Flow.Dst) {
			return []string{j.Name}
		}
	}
	return []string{""}
}

// lossGroups are the groups that a loss counts for: its link; the path that the flow
// had in the newest slot that began no later; otherwise those of the flow.
func lossGroups(q record.FlowGroupQuery, s *flowRows, l *record.Loss) []string {
	switch q.GroupBy {
	case record.GroupByLink:
		return []string{l.From + ">" + l.To}
	case record.GroupByPath:
		for i := range s.rows {
			if !s.rows[i].Time.After(l.Time) {
				return groupsOf(q, &s.rows[i])
			}
		}
		return nil
	}
	names := groupsOf(q, &record.FlowSlot{Flow: s.Flow, Src: s.Src, Dst: s.Dst})
	if q.Merge != nil {
		names[0] = q.Merge[names[0]]
	}
	return names
}
