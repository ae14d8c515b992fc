package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// flowID is a flow between two hosts.
type flowID struct{ flow, src, dst string }

// slotSums are the slots of a flow on one path, in one step.
type slotSums struct {
	flowID
	key                   model.FlowKey
	path                  []string
	step                  int64
	slots, packets, bytes uint64
}

// FlowGroups returns sums of groups. The server adds up slots by flow, path and step.
func (s *Store) FlowGroups(ctx context.Context, q record.FlowGroupQuery) (a record.FlowGroups, err error) {
	asked := record.Query{From: q.From, To: q.To, Node: q.Node}
	c, err := s.start(ctx, store.Flows, asked)
	if err != nil {
		return a, err
	}
	if q.Step > 0 && (q.From.IsZero() || q.To.IsZero()) {
		return a, fmt.Errorf("query of %s: %w: a series needs a range", store.Flows, store.ErrQuery)
	}
	f := s.flowRange(asked, c.Bound, &q.Filter)
	g := &grouping{query: &q, groups: map[string]*group{}}
	if q.Step > 0 {
		g.steps = int((q.To.Sub(q.From) + q.Step - 1) / q.Step)
	}
	a.Series = make([]uint64, max(g.steps, 0))
	err = f.readLosses(ctx)
	if err == nil {
		a.Totals, err = g.read(ctx, f, a.Series)
	}
	if err == nil {
		err = g.addLosses(ctx, f)
	}
	if err == nil {
		err = f.readCoverage(ctx)
	}
	if err != nil {
		return record.FlowGroups{}, s.failed(ctx, store.Flows, err)
	}
	a.Groups, a.Omitted = g.largest()
	a.Partial, a.KeptFrom, a.KeptTo = f.partial, f.oldest, f.newest
	return a, nil
}

// grouping adds flows to groups.
type grouping struct {
	query   *record.FlowGroupQuery
	steps   int
	groups  map[string]*group
	flows   map[flowID]model.FlowKey // that match
	byLosts map[string][]flowID      // flows of a key
}

type group struct {
	record.FlowGroup
	flows map[flowID]bool
}

// read reads the slots of all flows that match.
func (g *grouping) read(ctx context.Context, f *flowRange, series []uint64) (t record.FlowTotals, err error) {
	list, err := f.matching(ctx)
	if err != nil {
		return t, err
	}
	t.FlowsKnown = true
	g.flows = make(map[flowID]model.FlowKey, len(list))
	for i := range list {
		addTotals(&t, &list[i])
		g.flows[flowID{list[i].Flow.String(), list[i].Src, list[i].Dst}] = list[i].Flow
	}
	if len(list) == 0 {
		return t, nil
	}
	step := "toInt64(0)"
	if g.steps > 0 {
		step = fmt.Sprintf("intDiv(time - %s, toInt64(%d))", number(store.Nanos(g.query.From)), int64(g.query.Step))
	}
	rows, err := f.conn.Query(ctx, fmt.Sprintf(`SELECT flow, src_host, dst_host, path, %s AS step, count(), %s, %s FROM flows WHERE %s GROUP BY flow, src_host, dst_host, path, step`,
		step, saturated("packets"), saturated("bytes"), f.flows))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var r slotSums
		if err := rows.Scan(&r.flow, &r.src, &r.dst, &r.path, &r.step, &r.slots, &r.packets, &r.bytes); err != nil {
			return t, err
		}
		key, matches := g.flows[r.flowID]
		if !matches {
			continue
		}
		r.key = key
		g.add(&r)
		if g.steps > 0 {
			series[r.step] = capped(series[r.step], r.bytes)
		}
	}
	return t, rows.Err()
}

// add adds slots to their groups.
func (g *grouping) add(r *slotSums) {
	for _, name := range g.names(r.key, r.src, r.dst, r.path) {
		name = g.merged(name)
		in := g.groups[name]
		if in == nil {
			in = &group{record.FlowGroup{Name: name, Series: make([]uint64, g.steps)}, map[flowID]bool{}}
			g.groups[name] = in
		}
		in.flows[r.flowID] = true
		in.Slots += r.slots
		in.Packets, in.Bytes = capped(in.Packets, r.packets), capped(in.Bytes, r.bytes)
		if g.steps > 0 {
			in.Series[r.step] = capped(in.Series[r.step], r.bytes)
		}
	}
}

func (g *grouping) merged(name string) string {
	if g.query.Merge != nil {
		return g.query.Merge[name]
	}
	return name
}

// names are the groups of a flow on a path.
func (g *grouping) names(k model.FlowKey, src, dst string, path []string) []string {
	switch g.query.GroupBy {
	case record.GroupByHost:
		return []string{src}
	case record.GroupByDstHost:
		return []string{dst}
	case record.GroupByPath:
		return []string{strings.Join(path, " > ")}
	case record.GroupByLink:
		return linksOf(path, dst)
	case record.GroupByClass:
		return []string{classOf(k)}
	}
	jobs := g.query.Filter.Jobs
	for i := range jobs {
		if j := &jobs[i]; j.Has(src, k.Src) && j.Has(dst, k.Dst) {
			return []string{j.Name}
		}
	}
	return []string{""}
}

// linksOf are the links of a path, the last to the receiver.
func linksOf(path []string, dst string) (links []string) {
	if dst != "" && len(path) > 0 {
		path = append(slices.Clone(path), dst)
	}
	for i := 1; i < len(path); i++ {
		if l := path[i-1] + ">" + path[i]; !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	return links
}

// classOf is the kind of traffic of a flow.
func classOf(k model.FlowKey) string {
	const rocev2Port = 4791
	switch {
	case k.Proto == model.UDP && k.DstPort == rocev2Port:
		return "RoCEv2"
	case k.Proto == model.TCP:
		return "tcp"
	case k.Proto == model.UDP:
		return "udp"
	}
	return "other"
}

// addLosses adds the losses of flows to groups: to those of their link; to that of the
// path which the flow had in the newest slot that began no later; otherwise to those of
// the flow.
func (g *grouping) addLosses(ctx context.Context, f *flowRange) error {
	if len(f.lost) == 0 || len(g.flows) == 0 {
		return nil
	}
	g.byLosts = map[string][]flowID{}
	for id := range g.flows {
		if _, lost := f.lost[id.flow]; lost {
			g.byLosts[id.flow] = append(g.byLosts[id.flow], id)
		}
	}
	switch g.query.GroupBy {
	case record.GroupByLink, record.GroupByPath:
		return g.addLossRows(ctx, f)
	}
	for flow, ids := range g.byLosts {
		for _, id := range ids {
			for _, name := range g.names(g.flows[id], id.src, id.dst, nil) {
				g.lose(g.merged(name), f.lost[flow])
			}
		}
	}
	return nil
}

func (g *grouping) lose(name string, packets uint64) {
	if in := g.groups[name]; in != nil {
		in.Lost = capped(in.Lost, packets)
	}
}

// pathSince is the path of a flow from a time on.
type pathSince struct {
	time time.Time
	path []string
}

// addLossRows reads losses one by one: they have a link and a time.
func (g *grouping) addLossRows(ctx context.Context, f *flowRange) error {
	paths := map[flowID][]pathSince{} // newest first
	if g.query.GroupBy == record.GroupByPath {
		rows, err := f.conn.Query(ctx, fmt.Sprintf(`SELECT flow, src_host, dst_host, time, path FROM flows WHERE %s AND flow %s (SELECT flow FROM losses WHERE %s) ORDER BY time DESC, seq DESC`,
			f.flows, f.in(), f.losses))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id flowID
			var at int64
			var path []string
			if err := rows.Scan(&id.flow, &id.src, &id.dst, &at, &path); err != nil {
				return err
			}
			paths[id] = append(paths[id], pathSince{instant(at), path})
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	rows, err := f.conn.Query(ctx, fmt.Sprintf(`SELECT flow, time, from_node, to_node, packets FROM losses WHERE %s`, f.losses))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var flow, from, to string
		var at int64
		var packets uint64
		if err := rows.Scan(&flow, &at, &from, &to, &packets); err != nil {
			return err
		}
		for _, id := range g.byLosts[flow] {
			if g.query.GroupBy == record.GroupByLink {
				g.lose(from+">"+to, packets)
				continue
			}
			for _, p := range paths[id] {
				if !p.time.After(instant(at)) {
					g.lose(strings.Join(p.path, " > "), packets)
					break
				}
			}
		}
	}
	return rows.Err()
}

// largest are the groups in the order asked for, and how many were omitted.
func (g *grouping) largest() (list []record.FlowGroup, omitted int) {
	value := func(r *record.FlowGroup) uint64 {
		switch g.query.Sort {
		case record.ByPackets:
			return r.Packets
		case record.ByLost:
			return r.Lost
		}
		return r.Bytes
	}
	for _, in := range g.groups {
		in.Flows = uint64(len(in.flows))
		list = append(list, in.FlowGroup)
	}
	slices.SortFunc(list, func(x, y record.FlowGroup) int {
		return cmp.Or(cmp.Compare(value(&y), value(&x)), cmp.Compare(x.Name, y.Name))
	})
	if limit := g.query.Limit; limit > 0 && len(list) > limit {
		list, omitted = list[:limit], len(list)-limit
	}
	return list, omitted
}
