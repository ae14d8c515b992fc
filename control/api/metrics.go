package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-telemetry/weft/model/record"
)

// apiMetrics are the API's own metrics.
type apiMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	panics   prometheus.Counter
}

func newAPIMetrics(r *prometheus.Registry, s *Server) (*apiMetrics, error) {
	c := &apiMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weft_api_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weft_api_request_seconds", Help: "Time to answer, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weft_api_refused_total", Help: "Requests refused before they were looked into, by reason.",
		}, []string{"reason"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weft_api_panics_total", Help: "Handlers that failed; each is a bug.",
		}),
	}
	for _, reason := range []string{"host", "cross origin", "token", "tenant", "connections", "requests", "store", "event clients"} {
		c.refused.WithLabelValues(reason) // so that a rate sees the first
	}
	for _, m := range []prometheus.Collector{c.requests, c.seconds, c.refused, c.panics, exporter{s}} {
		if err := r.Register(m); err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
	}
	return c, nil
}

// observeRequest counts an answer. A stream's time says nothing and is left out.
func (c *apiMetrics) observeRequest(method, route string, status int, took time.Duration) {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS":
	default:
		method = "other" // clients may invent any number of them
	}
	c.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if route != Prefix+"/events" {
		c.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// exporter reads the rest when it is asked: the hub, and what the controller
// says of pipeline and fabric.
type exporter struct{ s *Server }

var (
	buildDesc     = prometheus.NewDesc("weft_build_info", "1, with what tells this binary from others.", []string{"version", "commit", "go_version"}, nil)
	clientsDesc   = prometheus.NewDesc("weft_api_event_clients", "Clients of event streams.", nil, nil)
	eventsDesc    = prometheus.NewDesc("weft_api_events_total", "Events published.", nil, nil)
	droppedDesc   = prometheus.NewDesc("weft_api_event_clients_dropped_total", "Clients of event streams that were too slow.", nil, nil)
	stageInDesc   = prometheus.NewDesc("weft_stage_in_total", "What came into a stage of the pipeline.", []string{"stage"}, nil)
	stageOutDesc  = prometheus.NewDesc("weft_stage_out_total", "What a stage handed on.", []string{"stage"}, nil)
	stageLostDesc = prometheus.NewDesc("weft_stage_lost_total", "What a stage lost, by reason; expected: by design.", []string{"stage", "reason", "expected"}, nil)
	stageFillDesc = prometheus.NewDesc("weft_stage_queue_fill", "How full a stage's queue is, 0 to 1.", []string{"stage"}, nil)
	storeDesc     = prometheus.NewDesc("weft_store_bytes", "Size of the store.", nil, nil)
	storeMaxDesc  = prometheus.NewDesc("weft_store_limit_bytes", "Size that the store is held to; 0: none.", nil, nil)
	storeMemDesc  = prometheus.NewDesc("weft_store_memory_bytes", "Memory that the store's engine holds, which is not part of the Go heap.", nil, nil)
	incidentsDesc = prometheus.NewDesc("weft_incidents_open", "Incidents that go on, by severity, of those that began in the last day.", []string{"severity"}, nil)
	nodesDesc     = prometheus.NewDesc("weft_fabric_nodes", "Nodes, by health.", []string{"health"}, nil)
	portsDesc     = prometheus.NewDesc("weft_fabric_ports", "Ports, by what is known of them: silent ones were not heard of for a second or more.", []string{"state"}, nil)
	queueDesc     = prometheus.NewDesc("weft_fabric_queue_bytes_max", "The deepest queue of all ports.", nil, nil)
	loadDesc      = prometheus.NewDesc("weft_fabric_load_share_max", "The highest load of all ports, as a share of the link's rate.", nil, nil)
	lostDesc      = prometheus.NewDesc("weft_fabric_lost_packets", "Packets lost on all links in the last 100 ms of the fabric's clock.", nil, nil)
	ageDesc       = prometheus.NewDesc("weft_switch_report_age_seconds", "Time since a switch was heard of last, by kind of report; a pair that never was heard has none.", []string{"switch", "source"}, nil)
	paceDesc      = prometheus.NewDesc("weft_fabric_pace", "Seconds of the fabric in one of the wall; 1 is real time.", nil, nil)
)

// Describe implements prometheus.Collector.
func (e exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildDesc, clientsDesc, eventsDesc, droppedDesc, stageInDesc, stageOutDesc, stageLostDesc, stageFillDesc,
		storeDesc, storeMaxDesc, storeMemDesc, incidentsDesc, nodesDesc, portsDesc, queueDesc, loadDesc, lostDesc, ageDesc, paceDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e exporter) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	b := e.s.deps.Build
	gauge(buildDesc, 1, b.Version, b.Commit, b.Go)
	clients, published, dropped := e.s.deps.Hub.stats()
	gauge(clientsDesc, float64(clients))
	counter(eventsDesc, published)
	counter(droppedDesc, dropped)

	h := e.s.deps.Live.Health()
	for i := range h.Stages {
		st := &h.Stages[i]
		counter(stageInDesc, st.In, st.Name)
		counter(stageOutDesc, st.Out, st.Name)
		for _, l := range st.Losses {
			counter(stageLostDesc, l.Count, st.Name, l.Reason, strconv.FormatBool(l.Expected))
		}
		if st.QueueLimit > 0 {
			gauge(stageFillDesc, float64(st.Queued)/float64(st.QueueLimit), st.Name)
		}
	}
	for i := range h.ReportAges {
		gauge(ageDesc, h.ReportAges[i].AgeMs/1000, h.ReportAges[i].Switch, h.ReportAges[i].Source)
	}
	gauge(storeDesc, float64(h.Store.Bytes))
	gauge(storeMaxDesc, float64(h.Store.MaxBytes))
	gauge(storeMemDesc, float64(h.Store.Memory))
	gauge(paceDesc, e.s.deps.Live.Clock().Pace)
	e.incidents(gauge)
	e.fabric(gauge)
}

// incidents counts those that are open. Where the store does not answer there
// is no metric: an alert on its absence is better than a wrong zero.
func (e exporter) incidents(gauge func(*prometheus.Desc, float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), e.s.cfg.RequestTimeout/4) // well before the scrape's own
	defer cancel()
	q := record.Query{From: e.s.deps.Live.Clock().Now.Add(-24 * time.Hour)}
	open := map[string]int{"notice": 0, "warning": 0, "critical": 0}
	if _, _, err := walkRecords(ctx, e.s, e.s.deps.Records.Incidents, q, func(r *record.Incident) bool {
		if r.End.IsZero() {
			open[r.Severity]++
		}
		return true
	}); err != nil {
		e.s.log.Error("count open incidents", "err", err)
		return
	}
	for severity, n := range open {
		gauge(incidentsDesc, float64(n), severity)
	}
}

// silentAfterMs is the age from which a port counts as silent: many times the
// interval at which ports with traffic are heard of.
const silentAfterMs = 1000

// fabric sums the state up. One metric for each port would be tens of thousands
// in a large fabric; the API has them.
func (e exporter) fabric(gauge func(*prometheus.Desc, float64, ...string)) {
	st := e.s.deps.Live.State()
	nodes := map[string]int{"ok": 0, "degraded": 0, "failed": 0, "unknown": 0}
	for i := range st.Nodes {
		nodes[st.Nodes[i].Health]++
	}
	for health, n := range nodes {
		gauge(nodesDesc, float64(n), health)
	}
	ports := map[string]int{"heard": 0, "silent": 0, "paused": 0, "lossy": 0}
	var queue, load float64
	var lost uint64
	for i := range st.Ports {
		p := &st.Ports[i]
		if p.AgeMs < 0 || p.AgeMs >= silentAfterMs {
			ports["silent"]++
		} else {
			ports["heard"]++
		}
		if p.PausedShare > 0 {
			ports["paused"]++
		}
		if p.LostPackets > 0 {
			ports["lossy"]++
		}
		queue, load = max(queue, float64(p.QueueBytes)), max(load, p.LoadShare)
		lost += p.LostPackets
	}
	for state, n := range ports {
		gauge(portsDesc, float64(n), state)
	}
	gauge(queueDesc, queue)
	gauge(loadDesc, load)
	gauge(lostDesc, float64(lost))
}
