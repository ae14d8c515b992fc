package api

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-telemetry/weft/model/record"
)

// apiMetrics are the metrics of the API itself.
type apiMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	panics   prometheus.Counter

	tokenFailures prometheus.Counter
	acceptErrors  prometheus.Counter
	auditFailures prometheus.Counter
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
			Name: "weft_api_refused_total", Help: "Requests and connections refused before processing, by reason.",
		}, []string{"reason"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weft_api_panics_total", Help: "Handler panics; each is a bug.",
		}),
		tokenFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weft_api_token_failures_total", Help: "Requests with a wrong token.",
		}),
		acceptErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weft_api_accept_errors_total", Help: "Failures to accept a connection, such as out of files.",
		}),
		auditFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weft_api_audit_failures_total", Help: "Records of the audit log that were not written.",
		}),
	}
	for _, reason := range []string{
		"host", "cross origin", "token", "tenant", "connections", "evicted", "requests", "store",
		"event clients",
	} {
		c.refused.WithLabelValues(reason) // so that rate() sees the first increment
	}
	for _, m := range []prometheus.Collector{
		c.requests, c.seconds, c.refused, c.panics, c.tokenFailures, c.acceptErrors, c.auditFailures, exporter{s},
	} {
		if err := r.Register(m); err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
	}
	return c, nil
}

// observeRequest counts a response. Event streams have no latency.
func (c *apiMetrics) observeRequest(method, route string, status int, took time.Duration) {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS":
	default:
		method = "other" // clients can send arbitrary methods
	}
	c.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if route != Prefix+"/events" {
		c.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// exporter collects the other metrics at every scrape: event hub, pipeline and
// fabric.
type exporter struct{ s *Server }

var (
	buildDesc = prometheus.NewDesc("weft_build_info", "Always 1; labels identify the build.",
		[]string{"version", "commit", "go_version"}, nil)
	connsDesc = prometheus.NewDesc("weft_api_connections", "Open connections, by who has shown to be behind them.",
		[]string{"caller"}, nil)
	failingDesc = prometheus.NewDesc("weft_api_token_failures_by_address",
		"Wrong tokens of the 10 client addresses with the most, until 10 min after the last.", []string{"address"}, nil)
	clientsDesc = prometheus.NewDesc("weft_api_event_clients", "Connected clients of event streams.", nil, nil)
	eventsDesc  = prometheus.NewDesc("weft_api_events_total", "Events published.", nil, nil)
	droppedDesc = prometheus.NewDesc("weft_api_event_clients_dropped_total",
		"Clients of event streams disconnected because they were too slow.", nil, nil)
	stageInDesc   = prometheus.NewDesc("weft_stage_in_total", "Input of a pipeline stage.", []string{"stage"}, nil)
	stageOutDesc  = prometheus.NewDesc("weft_stage_out_total", "Output of a pipeline stage.", []string{"stage"}, nil)
	stageLostDesc = prometheus.NewDesc("weft_stage_lost_total",
		"Losses of a pipeline stage, by reason; expected is true for losses by design.", []string{
			"stage", "reason",
			"expected",
		}, nil)
	stageFillDesc = prometheus.NewDesc("weft_stage_queue_fill", "Fill level of a pipeline stage's queue, 0 to 1.",
		[]string{"stage"}, nil)
	storeDesc    = prometheus.NewDesc("weft_store_bytes", "Size of the store.", nil, nil)
	storeMaxDesc = prometheus.NewDesc("weft_store_limit_bytes", "Size limit of the store; 0: unlimited.", nil, nil)
	storeMemDesc = prometheus.NewDesc("weft_store_memory_bytes", "Memory of the store's engine outside the Go heap.",
		nil, nil)
	incidentsDesc = prometheus.NewDesc("weft_incidents_open",
		"Open incidents that began in the last 24 h, by severity.", []string{"severity"}, nil)
	nodesDesc = prometheus.NewDesc("weft_fabric_nodes", "Nodes by health.", []string{"health"}, nil)
	portsDesc = prometheus.NewDesc("weft_fabric_ports", "Ports by state; silent: no report for 1 s or more.",
		[]string{"state"}, nil)
	queueDesc = prometheus.NewDesc("weft_fabric_queue_bytes_max", "Deepest queue of all ports.", nil, nil)
	loadDesc  = prometheus.NewDesc("weft_fabric_load_share_max",
		"Highest load of all ports, as a share of the link rate.", nil, nil)
	lostDesc = prometheus.NewDesc("weft_fabric_lost_packets",
		"Packets lost on all links in the last 100 ms of the fabric's time.", nil, nil)
	wrongDesc = prometheus.NewDesc("weft_source_wrong",
		"1 for a source that contradicts others which count the same packets.", []string{"switch", "port", "source", "state"}, nil)
	ageDesc = prometheus.NewDesc("weft_switch_report_age_seconds",
		"Age of a switch's newest report, by kind of report; absent before the first report.", []string{
			"switch",
			"source",
		}, nil)
	paceDesc = prometheus.NewDesc("weft_fabric_pace", "Simulated seconds per wall-clock second; 1 is real time.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (e exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildDesc, connsDesc, failingDesc, clientsDesc, eventsDesc, droppedDesc, stageInDesc, stageOutDesc, stageLostDesc, stageFillDesc,
		storeDesc, storeMaxDesc, storeMemDesc, incidentsDesc, nodesDesc, portsDesc, queueDesc, loadDesc, lostDesc,
		ageDesc, wrongDesc, paceDesc,
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
	open := e.s.conns.open()
	for class, name := range []string{anonymousConn: "anonymous", tenantConn: "tenant", operatorConn: "operator"} {
		gauge(connsDesc, float64(open[class]), name)
	}
	for _, f := range e.s.failures.most(shownAddresses) {
		gauge(failingDesc, float64(f.count), f.text())
	}
	clients, published, dropped := e.s.deps.Hub.stats()
	gauge(clientsDesc, float64(clients))
	counter(eventsDesc, published)
	counter(droppedDesc, dropped)

	h := e.s.health()
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
	for i := range h.Wrong {
		w := &h.Wrong[i]
		port := ""
		if w.Port != nil && w.Source != "flowset" {
			port = w.Port.Interface
		}
		gauge(wrongDesc, 1, w.Switch, port, w.Source+protocolSuffix(w.Protocol), w.State)
	}
	gauge(storeDesc, float64(h.Store.Bytes))
	gauge(storeMaxDesc, float64(h.Store.MaxBytes))
	gauge(storeMemDesc, float64(h.Store.Memory))
	gauge(paceDesc, e.s.deps.Live.Clock().Pace)
	e.incidents(gauge)
	e.fabric(gauge)
}

// protocolSuffix distinguishes counters of one port that come by different protocols.
func protocolSuffix(protocol string) string {
	if protocol == "" {
		return ""
	}
	return " by " + protocol
}

// incidents counts open incidents. If the store fails it exports no metric: an
// alert on its absence is better than a wrong zero.
func (e exporter) incidents(gauge func(*prometheus.Desc, float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), e.s.cfg.RequestTimeout/4) // well before the scrape's timeout
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
// report interval of ports with traffic.
const silentAfterMs = 1000

// fabric exports a summary of the state. One metric per port would be tens of
// thousands in a large fabric; the API has them.
func (e exporter) fabric(gauge func(*prometheus.Desc, float64, ...string)) {
	st := e.s.deps.Live.State()
	nodes := map[string]int{"ok": 0, "degraded": 0, "failed": 0, "unknown": 0}
	for i := range st.Nodes {
		nodes[st.Nodes[i].Health]++
	}
	for health, n := range nodes {
		gauge(nodesDesc, float64(n), health)
	}
	ports := map[string]int{"reporting": 0, "silent": 0, "paused": 0, "lossy": 0}
	var queue, load float64
	var lost uint64
	for i := range st.Ports {
		p := &st.Ports[i]
		if p.AgeMs < 0 || p.AgeMs >= silentAfterMs {
			ports["silent"]++
		} else {
			ports["reporting"]++
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
