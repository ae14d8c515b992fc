package collector

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/rocev2"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Status holds the counters of a collector.
type Status struct {
	Listen  netip.AddrPort       `json:"listen"`
	Uptime  time.Duration        `json:"uptime_ns"`
	Workers []WorkerStats        `json:"workers,omitempty"`     // of sockets that receive reports
	Shards  []translate.Stats    `json:"translators,omitempty"` // of translators
	Links   []rocev2.ClientStats `json:"links,omitempty"`       // of connections to remote collectors
	RoCE    *rocev2.ServerStats  `json:"rocev2,omitempty"`      // of memory that is written by RDMA
	Memory  []MemoryStatus       `json:"memory,omitempty"`
	Notices uint64               `json:"notices"` // immediate reports

	Recording *capture.Stats `json:"recording,omitempty"` // of datagrams that are also recorded in a file
}

// MemoryStatus describes one memory.
type MemoryStatus struct {
	Kind        string          `json:"kind"`
	Geometry    json.RawMessage `json:"geometry"`
	Bytes       int64           `json:"bytes"`
	Counts      region.Counts   `json:"counts"`
	Entries     uint64          `json:"entries,omitempty"`     // ever written to all lists
	Overwritten uint64          `json:"overwritten,omitempty"` // entries that newer ones overwrote
}

// sum adds up a counter of all workers. Unlike Status it reads no memory, and may be called
// after that was closed.
func (c *Collector) sum(of func(*WorkerStats) uint64) (n uint64) {
	for _, w := range c.workers {
		w.mu.Lock()
		n += of(&w.stats)
		w.mu.Unlock()
	}
	return n
}

// ReadThrough is a time before which everything that arrived at the sockets has been
// stored. It is behind while workers are, and by the wait of an idle socket at most else.
func (c *Collector) ReadThrough() model.Time {
	t := int64(math.MaxInt64)
	for _, w := range c.workers {
		t = min(t, w.readThrough.Load())
	}
	return model.Time(t)
}

// Dropped is how many datagrams the kernel has dropped.
func (c *Collector) Dropped() uint64 {
	return c.sum(func(s *WorkerStats) uint64 { return s.Socket.Dropped })
}

// Stored is how many reports the workers have stored.
func (c *Collector) Stored() uint64 {
	return c.sum(func(s *WorkerStats) uint64 { return s.Intake.Stored })
}

// Appended is how many of Stored are in lists, to be read.
func (c *Collector) Appended() uint64 {
	return c.sum(func(s *WorkerStats) uint64 { return s.Intake.Appended })
}

// Dropped is how many datagrams the kernel had dropped.
func (s *Status) Dropped() (n uint64) {
	for i := range s.Workers {
		n += s.Workers[i].Socket.Dropped
	}
	return n
}

// Status returns the current counters.
func (c *Collector) Status() Status {
	st := Status{Listen: c.Addr(), Uptime: time.Since(c.started), Notices: c.notices.total.Load()}
	for _, w := range c.workers {
		w.mu.Lock()
		st.Workers = append(st.Workers, w.stats)
		w.mu.Unlock()
	}
	link := func(l *rocev2.Client) {
		ts, cs := l.Stats()
		st.Shards, st.Links = append(st.Shards, ts), append(st.Links, cs)
	}
	for _, s := range c.shards {
		switch s := s.(type) {
		case *lockedTranslator:
			s.mu.Lock()
			st.Shards = append(st.Shards, s.tr.Stats())
			s.mu.Unlock()
		case *rocev2.Client:
			link(s)
		case translate.Replicas:
			for _, r := range s {
				link(r.(*rocev2.Client))
			}
		}
	}
	if c.server != nil {
		roce := c.server.Stats()
		st.RoCE = &roce
	}
	if c.cfg.Recorded != nil {
		recorded := c.cfg.Recorded()
		st.Recording = &recorded
	}
	if c.memory == nil {
		return st
	}
	// Without the memory's part if its file is truncated: the workers, which write it,
	// return that error.
	_ = region.Guard(func() error { st.Memory = c.memoryStatus(); return nil })
	return st
}

func (c *Collector) memoryStatus() (all []MemoryStatus) {
	for _, r := range c.memory.Regions() {
		h := r.Header()
		all = append(all, MemoryStatus{Kind: h.Kind, Geometry: h.Geometry, Bytes: h.Size, Counts: r.Counts()})
	}
	lists := all[len(all)-len(c.memory.Lists):]
	for i, t := range c.memory.Lists {
		for id := range t.Lists() {
			head, _ := t.Head(id)
			class, _ := t.Class(id)
			lists[i].Entries += head
			lists[i].Overwritten += head - min(head, uint64(class.Capacity))
		}
	}
	return all
}

// Loss is one kind of loss in a collector, and its count.
type Loss struct {
	Stage  string `json:"stage"` // kernel, intake, ack, list, link, rocev2, setup, recording
	Reason string `json:"reason"`
	Unit   string `json:"unit"` // unit of Count
	Count  uint64 `json:"count"`
}

// Losses lists every kind of loss, also those with a count of 0.
func (s Status) Losses() []Loss {
	sum := func(f func(WorkerStats) uint64) (n uint64) {
		for _, w := range s.Workers {
			n += f(w)
		}
		return n
	}
	refused := func(v dta.Verdict) uint64 {
		return sum(func(w WorkerStats) uint64 { return w.Intake.Refused[v] })
	}
	overwritten := uint64(0)
	for _, m := range s.Memory {
		overwritten += m.Overwritten
	}
	missing := sum(func(w WorkerStats) uint64 { return w.Intake.Missing })
	late := sum(func(w WorkerStats) uint64 { return w.Intake.Late })
	dropped := sum(func(w WorkerStats) uint64 { return w.Socket.Dropped })
	if s.RoCE != nil {
		dropped += s.RoCE.Socket.Dropped
	}
	all := []Loss{
		{"kernel", "queue full", "datagrams", dropped},
		{"kernel", "too long", "datagrams", sum(func(w WorkerStats) uint64 { return w.Socket.Truncated })},
		{"intake", "unknown format", "datagrams", sum(func(w WorkerStats) uint64 { return w.Intake.UnknownFormat })},
		{"intake", "truncated", "datagrams", sum(func(w WorkerStats) uint64 { return w.Intake.Truncated })},
		{"intake", "missing", "reports", missing - min(missing, late)},
		{"intake", "stale", "reports", sum(func(w WorkerStats) uint64 { return w.Intake.Stale })},
		{"intake", "duplicate", "reports", sum(func(w WorkerStats) uint64 { return w.Intake.Duplicate })},
		{"intake", "rate limit", "reports", refused(dta.RateLimited)},
		{"intake", "no memory", "reports", refused(dta.Unserved)},
		{"ack", "not sent", "acks", sum(func(w WorkerStats) uint64 { return w.LostAcks })},
		{"list", "overwritten", "entries", overwritten},
	}
	for why := translate.Admitted + 1; int(why) < translate.Refusals; why++ {
		all = append(all, Loss{"admission", why.String(), "reports", sum(func(w WorkerStats) uint64 { return w.Intake.DeniedBy[why] })})
	}
	if len(s.Links) > 0 {
		var lost, unsent uint64
		for _, l := range s.Links {
			lost += l.Requester.Lost
			unsent += l.Remote.Dropped
		}
		all = append(all, Loss{"link", "connection ended", "operations", lost},
			Loss{"link", "window full", "writes", unsent})
	}
	if s.RoCE != nil {
		for _, r := range rdma.Refusals() {
			all = append(all, Loss{"rocev2", r.String(), "packets", s.RoCE.Responder.Refused[r]})
		}
		for _, r := range rocev2.Refusals() {
			all = append(all, Loss{"setup", r.String(), "connections", s.RoCE.Setup.Refused[r]})
		}
		cm := s.RoCE.CM
		all = append(all, Loss{"rdma_cm", "malformed", "messages", cm.Malformed},
			Loss{"rdma_cm", "unknown connection", "messages", cm.UnknownCommID},
			Loss{"rdma_cm", "no answer to the reply", "connections", cm.TimedOut},
			Loss{"rdma_cm", "displaced", "connections", cm.Displaced},
			Loss{"rdma_cm", "region not received", "messages", cm.SendsRefused})
	}
	if s.Recording != nil {
		all = append(all, Loss{"recording", "disk too slow", "datagrams", s.Recording.Shed},
			Loss{"recording", "disk error", "datagrams", s.Recording.Failed})
	}
	return all
}

// Stored returns the number of reports that were written or are being gathered.
func (s Status) Stored() (n uint64) {
	for _, w := range s.Workers {
		n += w.Intake.Stored
	}
	return n
}

// handler serves the status and the stream of notices.
func (c *Collector) handler() http.Handler {
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(exporter{c})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.Status())
	})
	mux.HandleFunc("GET /notices", c.serveNotices)
	return mux
}

// shutdownTimeout limits the time of open requests at shutdown, writeTimeout the
// time that a client takes to read an event.
const (
	shutdownTimeout = 2 * time.Second
	writeTimeout    = 10 * time.Second
)

// requestGate waits for open requests at shutdown.
type requestGate struct {
	mu   sync.RWMutex
	over bool
}

// wrap passes requests to h until the gate is closed.
func (g *requestGate) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.RLock()
		defer g.mu.RUnlock()
		if !g.over {
			h.ServeHTTP(w, r)
		}
	})
}

// close rejects new requests and waits for open ones.
func (g *requestGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

// serveNotices streams immediate reports as server-sent events. A slow client gets
// the number of events it missed, and one that does not read at all is
// disconnected.
func (c *Collector) serveNotices(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	queue := make(chan string, 1024)
	missed := make(chan uint64, 1)
	stop := c.SubscribeNotices(func(n translate.ImmediateNotice) {
		where := "list"
		if n.Primitive != dta.Append {
			where = "slot"
		}
		line := fmt.Sprintf("event: %s\ndata: %s %d\n\n", n.Primitive, where, n.List)
		if len(n.Key) > 0 {
			line = fmt.Sprintf("event: %s\ndata: key %s\n\n", n.Primitive, hex.EncodeToString(n.Key))
		}
		select {
		case queue <- line:
		default:
			select {
			case have := <-missed:
				missed <- have + 1
			default:
				missed <- 1
			}
		}
	})
	defer stop()
	// Only now: a client that has the headers is subscribed, and misses nothing.
	_ = flush.Flush()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case line := <-queue:
			err = flush.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err == nil {
				_, err = w.Write([]byte(line))
			}
		case n := <-missed:
			_, err = fmt.Fprintf(w, "event: missed\ndata: %d\n\n", n)
		}
		if err != nil || len(queue) == 0 && flush.Flush() != nil {
			return
		}
	}
}
