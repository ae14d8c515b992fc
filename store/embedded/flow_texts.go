package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// numberedRow is a row of flow_rows.
type numberedRow struct {
	at         recordPosition
	flow, path int64
	record     record.FlowSlot
	less       uint64
	list       []any // hop_packets; nil: less applies
}

const numberedColumns = `time, seq, flow_id, path_id, packets, bytes, hop_less, hop_packets, samples`

func (n *numberedRow) scan(rows *sql.Rows) error {
	var list any
	err := rows.Scan(&n.at.time, &n.at.seq, &n.flow, &n.path, &n.record.Packets, &n.record.Bytes, &n.less, &list, &n.record.Samples)
	if err != nil || list == nil {
		return err
	}
	return (&duckList{&n.list}).Scan(list)
}

// flowTexts are rows of flow_keys and flow_paths by number; nil for one that cannot
// be read.
type flowTexts struct {
	flows map[int64]*numberedFlow
	paths map[int64]*numberedPath
}

// maxTexts limits the flows in memory, and the paths, that queries have read.
const maxTexts = 1 << 15

func newFlowTexts() flowTexts {
	return flowTexts{map[int64]*numberedFlow{}, map[int64]*numberedPath{}}
}

// missing are the numbers of rows that are not there, in order.
func (t *flowTexts) missing(list []numberedRow) (flows, paths []int64) {
	for i := range list {
		if _, known := t.flows[list[i].flow]; !known {
			flows = append(flows, list[i].flow)
		}
		if _, known := t.paths[list[i].path]; !known {
			paths = append(paths, list[i].path)
		}
	}
	slices.Sort(flows)
	slices.Sort(paths)
	return slices.Compact(flows), slices.Compact(paths)
}

// has reports whether the texts of a row are there.
func (t *flowTexts) has(n *numberedRow) bool { return t.flows[n.flow] != nil && t.paths[n.path] != nil }

// record completes a row.
func (t *flowTexts) record(n *numberedRow) (r record.FlowSlot, err error) {
	if !t.has(n) {
		return r, fmt.Errorf("flow %d or path %d cannot be read", n.flow, n.path)
	}
	flow, path := t.flows[n.flow], t.paths[n.path]
	r = n.record
	r.Time, r.Flow, r.Src, r.Dst = n.at.time, flow.key, flow.src, flow.dst
	r.Slot, r.Exact, r.Partial = time.Duration(path.slot), path.exact, path.partial
	if n.list != nil && len(n.list) != len(path.switches) || n.list == nil && len(path.switches) > maxLessHops {
		return r, fmt.Errorf("%d hops, %d counts", len(path.switches), len(n.list))
	}
	for i, name := range path.switches {
		hop := record.FlowHop{Switch: name, Packets: hopPackets(r.Packets, n.less, i)}
		if n.list != nil {
			var ok bool
			if hop.Packets, ok = n.list[i].(uint64); !ok {
				return r, fmt.Errorf("count of hop %d is %v", i, n.list[i])
			}
		}
		r.Path = append(r.Path, hop)
	}
	return r, nil
}

const (
	flowKeyColumns  = `SELECT id, flow, src_host, dst_host FROM flow_keys`
	flowPathColumns = `SELECT id, slot_ns, exact, partial, path FROM flow_paths`
)

func (t *flowTexts) scanFlow(rows *sql.Rows) error {
	n := &numberedFlow{}
	if err := rows.Scan(&n.id, flowText{&n.key}, &n.src, &n.dst); err != nil {
		return err
	}
	t.flows[n.id] = n
	return nil
}

func (t *flowTexts) scanPath(rows *sql.Rows) error {
	n := &numberedPath{}
	var path []any
	if err := rows.Scan(&n.id, &n.slot, &n.exact, &n.partial, &duckList{&path}); err != nil {
		return err
	}
	for _, name := range path {
		text, ok := name.(string)
		if !ok {
			return fmt.Errorf("switch of path %d is %v", n.id, name)
		}
		n.switches = append(n.switches, text)
	}
	t.paths[n.id] = n
	return nil
}

// numbersIn is the condition for some numbers, in order. DuckDB skips what is not
// between their ends.
func numbersIn(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return fmt.Sprintf(` WHERE id >= %d AND id <= %d AND id IN (%s)`, ids[0], ids[len(ids)-1], strings.Join(texts, ", "))
}

// textCache has the texts that queries read. A number never gets another text.
type textCache struct {
	sync.Mutex
	flowTexts
}

func (c *textCache) reset() {
	c.Lock()
	defer c.Unlock()
	c.flowTexts = newFlowTexts()
}

// copyTo copies the texts of rows that are in the cache.
func (c *textCache) copyTo(to *flowTexts, list []numberedRow) {
	c.Lock()
	defer c.Unlock()
	for i := range list {
		if f := c.flows[list[i].flow]; f != nil {
			to.flows[f.id] = f
		}
		if p := c.paths[list[i].path]; p != nil {
			to.paths[p.id] = p
		}
	}
}

// add adds texts.
func (c *textCache) add(more *flowTexts) {
	c.Lock()
	defer c.Unlock()
	if len(c.flows) > maxTexts || len(c.paths) > maxTexts {
		c.flowTexts = newFlowTexts()
	}
	maps.Copy(c.flows, more.flows)
	maps.Copy(c.paths, more.paths)
}

// textsOf returns the texts of rows, as far as they exist.
func (s *Store) textsOf(ctx context.Context, list []numberedRow) (*flowTexts, error) {
	texts := newFlowTexts()
	s.flowTexts.copyTo(&texts, list)
	flows, paths := texts.missing(list)
	if len(flows) > 0 {
		if err := s.queryRows(ctx, flowKeyColumns+numbersIn(flows), nil, texts.scanFlow); err != nil {
			return nil, err
		}
	}
	if len(paths) > 0 {
		if err := s.queryRows(ctx, flowPathColumns+numbersIn(paths), nil, texts.scanPath); err != nil {
			return nil, err
		}
	}
	if len(flows)+len(paths) > 0 {
		s.flowTexts.add(&texts)
	}
	return &texts, nil
}
