package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/member"
)

// Metrics exports what a member does. Parts that it does not have are nil.
type Metrics struct {
	Streams   Streams
	Groups    map[string]*member.Member // by name of the group
	Publisher *Publisher
	Analyzers *Analyzers
	Leader    *Leader
}

var (
	heldDesc     = prometheus.NewDesc("weft_cluster_held", "Parts of a group's work that this member has; of the group lead, 1: it leads.", []string{"group"}, nil)
	acquiredDesc = prometheus.NewDesc("weft_cluster_acquired_total", "Parts that this member has taken.", []string{"group"}, nil)
	expiredDesc  = prometheus.NewDesc("weft_cluster_leases_lost_total", "Leases that expired, as the broker was not reached in time.", []string{"group"}, nil)
	failedDesc   = prometheus.NewDesc("weft_cluster_work_failed_total", "Work on a part that ended with an error, and is taken up again.", []string{"group"}, nil)

	slotsDesc     = prometheus.NewDesc("weft_cluster_slots_total", "Slots of parts that were analysed.", nil, nil)
	restartedDesc = prometheus.NewDesc("weft_cluster_restarted_total", "Parts that were begun without the slots before.", nil, nil)
	batchesDesc   = prometheus.NewDesc("weft_cluster_batches_total", "Batches of events that the leader has applied.", nil, nil)
	missingDesc   = prometheus.NewDesc("weft_cluster_results_missing_total", "Results of parts of slots that the leader went on without.", nil, nil)
	shedDesc      = prometheus.NewDesc("weft_cluster_shed_total", "How often this leader had a member's parts taken by the others, as it was slower.", nil, nil)
	lagDesc       = prometheus.NewDesc("weft_cluster_lag_seconds", "How far what the leader has applied is behind what has arrived.", nil, nil)
	refusedDesc   = prometheus.NewDesc("weft_cluster_refused_total", "What the decoder could not publish, as buffers were full: batches of events, parts of slots.", []string{"what"}, nil)
	unreadDesc    = prometheus.NewDesc("weft_cluster_malformed_total", "Frames that could not be read, such as those of another version.", []string{"role"}, nil)

	publishedDesc = prometheus.NewDesc("weft_stream_published_total", "Messages that this member published.", []string{"stream"}, nil)
	deliveredDesc = prometheus.NewDesc("weft_stream_delivered_total", "Messages that the broker has stored.", []string{"stream"}, nil)
	waitingDesc   = prometheus.NewDesc("weft_stream_waiting", "Messages that wait in this member for the broker.", []string{"stream"}, nil)
	lostDesc      = prometheus.NewDesc("weft_stream_lost_total", "Messages that were not accepted, by reason.", []string{"stream", "reason"}, nil)
	repeatedDesc  = prometheus.NewDesc("weft_stream_duplicates_total", "Messages that were published before, by this member or another, and discarded.", []string{"stream"}, nil)
	readDesc      = prometheus.NewDesc("weft_stream_read_total", "Messages that this member read, those that were read again included.", []string{"stream"}, nil)
	ackedDesc     = prometheus.NewDesc("weft_stream_acknowledged_total", "Messages that this member acknowledged.", []string{"stream"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for group, of := range m.Groups {
		st := of.Stats()
		gauge(heldDesc, float64(st.Held), group)
		counter(acquiredDesc, st.Acquired, group)
		counter(expiredDesc, st.Lost, group)
		counter(failedDesc, st.Failed, group)
	}
	if m.Analyzers != nil {
		slots, malformed, restarted := m.Analyzers.Counts()
		counter(slotsDesc, slots)
		counter(restartedDesc, restarted)
		counter(unreadDesc, malformed, "analyze")
	}
	if m.Leader != nil {
		batches, malformed, missing := m.Leader.Counts()
		counter(batchesDesc, batches)
		counter(missingDesc, missing)
		counter(unreadDesc, malformed, "lead")
		counter(shedDesc, m.Leader.Sheds())
		gauge(lagDesc, m.Leader.Lag().Seconds())
	}
	if m.Publisher != nil {
		events, parts := m.Publisher.Refused()
		counter(refusedDesc, events, "events")
		counter(refusedDesc, parts, "parts")
	}
	for name, s := range map[string]stream.Stats{"flows": m.Streams.Flows.Stats(), "lead": m.Streams.Lead.Stats()} {
		counter(publishedDesc, s.Published, name)
		counter(deliveredDesc, s.Delivered, name)
		gauge(waitingDesc, float64(s.Waiting), name)
		counter(lostDesc, s.Full, name, "full")
		counter(lostDesc, s.TooLarge, name, "too large")
		counter(lostDesc, s.Closed, name, "closed")
		counter(repeatedDesc, s.Duplicate, name)
		counter(readDesc, s.Read, name)
		counter(ackedDesc, s.Acknowledged, name)
	}
}

// Serve answers /metrics and /healthz until ctx ends.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	r := prometheus.NewRegistry()
	if err := r.Register(m); err != nil {
		return errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 8 << 10}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
