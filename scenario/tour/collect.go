package tour

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Traffic accounts for every report between switches and collector.
type Traffic struct {
	Datagrams int `json:"datagrams"`
	Bytes     int `json:"bytes"`
	Reports   int `json:"reports"`
	Lost      int `json:"reports_lost"` // by gaps in the sequence numbers
	Malformed int `json:"datagrams_malformed"`
}

// collector receives reports from a socket and keeps what they say.
type collector struct {
	conn     *net.UDPConn
	received atomic.Int64 // datagrams
	traffic  Traffic
	finished int                              // reporters that are through
	next     map[model.NodeID]dta.Seq         // first report not yet seen
	seen     map[model.FlowKey][]model.NodeID // by hop
	ways     map[model.FlowKey][]label.Item   // oldest first
}

func newCollector() (*collector, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("tour: collector's socket: %w", err)
	}
	return &collector{conn: conn, next: map[model.NodeID]dta.Seq{}, seen: map[model.FlowKey][]model.NodeID{}, ways: map[model.FlowKey][]label.Item{}}, nil
}

func (c *collector) addr() *net.UDPAddr { return c.conn.LocalAddr().(*net.UDPAddr) }

func (c *collector) close() error { return c.conn.Close() }

// receive reads until every reporter has said its last word, or until nothing
// more comes after the sender is done.
func (c *collector) receive(sending <-chan struct{}, reporters int) error {
	buf := make([]byte, 1<<16)
	var reader dta.Reader
	for c.finished < reporters {
		if err := c.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, err := c.conn.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			select {
			case <-sending:
				return nil
			default:
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("tour: collector: %w", err)
		}
		c.received.Add(1)
		c.take(&reader, buf[:n])
	}
	return nil
}

func (c *collector) take(reader *dta.Reader, datagram []byte) {
	c.traffic.Datagrams++
	c.traffic.Bytes += len(datagram)
	if reader.Reset(datagram) != nil {
		c.traffic.Malformed++
		return
	}
	h := reader.Header()
	c.traffic.Lost += h.Seq.Sub(c.next[h.Reporter])
	c.next[h.Reporter] = h.Seq + dta.Seq(h.Count)
	if h.Count == 0 {
		c.finished++
	}
	var r dta.Report
	for reader.Next(&r) {
		c.traffic.Reports++
		switch r.Primitive {
		case dta.Postcarding:
			c.postcard(&r)
		case dta.Append:
			c.way(&r)
		}
	}
	if reader.Err() != nil {
		c.traffic.Malformed++
	}
}

func (c *collector) postcard(r *dta.Report) {
	var key model.FlowKey
	if key.Parse(r.Key) != nil || len(r.Data) != 4 {
		c.traffic.Malformed++
		return
	}
	hops := c.seen[key]
	for len(hops) <= int(r.Hop) {
		hops = append(hops, noNode)
	}
	hops[r.Hop] = model.NodeID(binary.BigEndian.Uint32(r.Data))
	c.seen[key] = hops
}

// noNode stands for a hop whose postcard has not come.
const noNode = ^model.NodeID(0)

func (c *collector) way(r *dta.Report) {
	key, rest, err := keyOf(r.Data)
	if err != nil {
		c.traffic.Malformed++
		return
	}
	var items []label.Item
	for len(rest) > 0 {
		var it label.Item
		n, err := it.Parse(rest)
		if err != nil {
			c.traffic.Malformed++
			return
		}
		items, rest = append(items, it), rest[n:]
	}
	c.ways[key] = items
}

// judge finds flows whose packet was last seen where it should not end, from
// the reports and the intended routes alone, and names the switch and the host
// it was for.
func (c *collector) judge(f *topo.Fabric, routes *topo.Routes) (found []Fault) {
	for key, hops := range c.seen {
		last := hops[len(hops)-1]
		if last == noNode || slices.Contains(routes.ExpectedLastHops(key.Dst), last) {
			continue
		}
		host, ok := f.ByAddr(key.Dst)
		if !ok || !f.Has(last) {
			continue
		}
		fault := Fault{Switch: f.Node(last).Name, Host: f.Node(host).Name}
		if !slices.Contains(found, fault) {
			found = append(found, fault)
		}
	}
	slices.SortFunc(found, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Host, b.Host))
	})
	return found
}

// longest returns the journey with the most hops, the first by key where
// several have as many, so that a seed shows the same one every time.
func (c *collector) longest(f *topo.Fabric) (j Journey) {
	var best []label.Item
	for key, items := range c.ways {
		if len(items) > len(best) || len(items) == len(best) && key.String() < j.Flow.String() {
			best, j.Flow = items, key
		}
	}
	for i, it := range best {
		hop := Hop{
			Switch: f.Node(it.Switch).Name, At: it.Time, Latency: it.Latency,
			In: f.PortName(model.Port{Node: it.Switch, Port: it.Ingress}), Out: f.PortName(model.Port{Node: it.Switch, Port: it.Egress}),
		}
		if i > 0 {
			hop.Link = it.Time.Sub(best[i-1].Time)
		}
		j.Hops = append(j.Hops, hop)
	}
	return j
}
