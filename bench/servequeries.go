package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// queries are what people and programs request from an API, each drawn anew:
// different filters, ranges, flows and ports every time, so that hardly two are
// equal.
type queries struct {
	rng    *rand.Rand
	fabric *topo.Fabric
	flows  []model.FlowKey
	begin  time.Time // of the store's records
}

// serveRoutes are the kinds of queries and their percentages. Those that do not
// read the store are not compared with the tables.
var serveRoutes = []struct {
	name   string
	share  int
	stored bool
	ask    func(q *queries) string
}{
	{"flows", 30, true, (*queries).flowListQuery},
	{"flow", 15, true, (*queries).flowQuery},
	{"port", 15, true, (*queries).portQuery},
	{"incidents", 12, true, (*queries).incidentsQuery},
	{"traces", 10, true, (*queries).tracesQuery},
	{"state", 6, false, func(*queries) string { return "/state" }},
	{"heatmap", 5, true, (*queries).heatmapQuery},
	{"health", 5, false, func(*queries) string { return "/health" }},
	{"topology", 2, false, func(*queries) string { return "/topology" }},
}

// drawQuery draws a query.
func (q *queries) drawQuery() (route int, path string) {
	n := q.rng.IntN(100)
	for i := range serveRoutes {
		if n -= serveRoutes[i].share; n < 0 {
			return i, "/api/v1" + serveRoutes[i].ask(q)
		}
	}
	panic("bench: percentages of queries do not add up to 100")
}

// timeRange draws a range: mostly up to now, and one in five somewhere in the past.
func (q *queries) timeRange() url.Values {
	v := url.Values{}
	long := time.Duration(float64(time.Second) * (1 + 600*q.rng.Float64()*q.rng.Float64()))
	if q.rng.IntN(5) > 0 {
		v.Set("last", fmt.Sprintf("%dms", long.Milliseconds()))
		return v
	}
	to := q.begin.Add(time.Duration(q.rng.Int64N(int64(max(time.Since(q.begin), 1)))))
	v.Set("to", to.UTC().Format(time.RFC3339Nano))
	v.Set("from", to.Add(-long/10).UTC().Format(time.RFC3339Nano))
	return v
}

func (q *queries) node() string {
	sw := q.fabric.Switches()
	return q.fabric.Node(sw[q.rng.IntN(len(sw))]).Name
}

func (q *queries) filter() string {
	f := q.flows[q.rng.IntN(len(q.flows))]
	return []string{
		fmt.Sprintf("ip.src == %s", f.Src),
		fmt.Sprintf("ip.dst == %s && udp.srcport == %d", f.Dst, f.SrcPort),
		fmt.Sprintf("udp.dstport == %d", f.DstPort),
		fmt.Sprintf("ip.src == %s && ip.dst == %s", f.Src, f.Dst),
	}[q.rng.IntN(4)]
}

func (q *queries) flowListQuery() string {
	v := q.timeRange()
	switch q.rng.IntN(4) {
	case 0:
		v.Set("node", q.node())
	case 1: // all of them
	default:
		v.Set("filter", q.filter())
	}
	v.Set("sort", []string{"bytes", "packets", "lost", "newest"}[q.rng.IntN(4)])
	return "/flows?" + v.Encode()
}

func (q *queries) flowQuery() string {
	return "/flows/" + url.PathEscape(q.flows[q.rng.IntN(len(q.flows))].String()) + "?" + q.timeRange().Encode()
}

func (q *queries) portQuery() string {
	sw := q.fabric.Switches()
	n := q.fabric.Node(sw[q.rng.IntN(len(sw))])
	return fmt.Sprintf("/ports/%s/%d?%s", n.Name, q.rng.IntN(len(n.Ports))+1, q.timeRange().Encode())
}

func (q *queries) incidentsQuery() string {
	v := q.timeRange()
	if q.rng.IntN(2) == 0 {
		v.Set("severity", []string{"notice", "warning", "critical"}[q.rng.IntN(3)])
	}
	return "/incidents?" + v.Encode()
}

func (q *queries) tracesQuery() string {
	v := q.timeRange()
	if q.rng.IntN(2) == 0 {
		v.Set("filter", q.filter())
	} else {
		v.Set("node", q.node())
	}
	return "/traces?" + v.Encode()
}

func (q *queries) heatmapQuery() string {
	v := q.timeRange()
	v.Set("metric", []string{"queue_bytes", "latency_ns", "load_bps"}[q.rng.IntN(3)])
	return "/ports/heatmap?" + v.Encode()
}

// queryResult is the result of one query.
type queryResult struct {
	route  int
	status int // 0: no response
	took   time.Duration
}

// sendQueries sends a number of queries a second for a time, whether or not earlier
// ones have been answered, at instants drawn in advance. Latency counts from that
// instant, so that waiting for a free core or connection is included.
func sendQueries(ctx context.Context, base string, q *queries, rate float64, during time.Duration) []queryResult {
	transport := &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all []queryResult
	at := time.Now()
	for end := at.Add(during); ctx.Err() == nil; {
		at = at.Add(time.Duration(q.rng.ExpFloat64() / rate * float64(time.Second)))
		if at.After(end) {
			break
		}
		route, path := q.drawQuery()
		time.Sleep(time.Until(at))
		intended := at
		wg.Go(func() {
			a := queryResult{route: route, status: sendQuery(ctx, client, base+path), took: time.Since(intended)}
			mu.Lock()
			all = append(all, a)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// sendQuery reads a response to its end.
func sendQuery(ctx context.Context, c *http.Client, address string) (status int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// latency returns the latencies in milliseconds, sorted. A query that was rejected
// or not answered counts as a minute: an error that comes quickly is no quick
// answer.
func latency(all []queryResult, route int) (ms []float64, failed int) {
	for _, a := range all {
		if route >= 0 && a.route != route {
			continue
		}
		took := a.took
		if a.status != http.StatusOK {
			failed++
			took = max(took, time.Minute)
		}
		ms = append(ms, float64(took)/float64(time.Millisecond))
	}
	slices.SortFunc(ms, cmp.Compare[float64])
	return ms, failed
}
