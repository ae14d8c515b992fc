package collector

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-telemetry/weft/collect/translate"
)

// exporter exports a Status as metrics.
type exporter struct{ c *Collector }

var (
	lossDesc = prometheus.NewDesc("weft_collect_lost_total",
		"Losses, by stage, reason and unit.", []string{"stage", "reason", "unit"}, nil)
	reportsDesc = prometheus.NewDesc("weft_collect_reports_total",
		"Reports stored, by primitive.", []string{"primitive"}, nil)
	datagramsDesc = prometheus.NewDesc("weft_collect_datagrams_total", "Datagrams received.", nil, nil)
	bytesDesc     = prometheus.NewDesc("weft_collect_bytes_total", "Bytes of datagrams received.", nil, nil)
	pathsDesc     = prometheus.NewDesc("weft_collect_paths_total",
		"Paths written, by reason for leaving the cache.", []string{"reason"}, nil)
	batchesDesc    = prometheus.NewDesc("weft_collect_list_batches_total", "Writes to lists.", nil, nil)
	matchesDesc    = prometheus.NewDesc("weft_collect_query_matches_total", "Matches of standing queries.", nil, nil)
	noticesDesc    = prometheus.NewDesc("weft_collect_notices_total", "Immediate reports announced.", nil, nil)
	reportersDesc  = prometheus.NewDesc("weft_collect_reporters", "Reporters with tracked sequence numbers.", nil, nil)
	restartsDesc   = prometheus.NewDesc("weft_collect_reporter_restarts_total", "Restarts of reporters.", nil, nil)
	memoryDesc     = prometheus.NewDesc("weft_memory_bytes", "Size of a memory.", []string{"kind", "index"}, nil)
	operationsDesc = prometheus.NewDesc("weft_rocev2_operations_total",
		"RDMA operations executed.", []string{"operation"}, nil)
	peersDesc = prometheus.NewDesc("weft_rocev2_peers", "Translators connected.", nil, nil)
	linkDesc  = prometheus.NewDesc("weft_translate_link_up",
		"Whether a collector is connected.", []string{"collector"}, nil)
	writesDesc = prometheus.NewDesc("weft_memory_writes_total",
		"Slots written since the last reset, each copy counted.", []string{"kind", "index"}, nil)
)

// Describe implements prometheus.Collector.
func (e exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		lossDesc, reportsDesc, datagramsDesc, bytesDesc, pathsDesc, batchesDesc, matchesDesc,
		noticesDesc, reportersDesc, restartsDesc, memoryDesc, writesDesc, operationsDesc, peersDesc, linkDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e exporter) Collect(ch chan<- prometheus.Metric) {
	st := e.c.Status()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, l := range st.Losses() {
		counter(lossDesc, l.Count, l.Stage, l.Reason, l.Unit)
	}
	var datagrams, bytes, reporters, restarts uint64
	for _, w := range st.Workers {
		datagrams += w.Socket.Datagrams
		bytes += w.Socket.Bytes
		reporters += w.Intake.Reporters
		restarts += w.Intake.Restarts
	}
	if st.RoCE != nil {
		datagrams += st.RoCE.Socket.Datagrams
		bytes += st.RoCE.Socket.Bytes
		counter(operationsDesc, st.RoCE.Responder.Writes, "write")
		counter(operationsDesc, st.RoCE.Responder.Adds, "fetch-add")
		counter(operationsDesc, st.RoCE.Responder.Swaps, "compare-swap")
		gauge(peersDesc, float64(st.RoCE.Peers))
	}
	for i, l := range st.Links {
		up := 0.0
		if l.Connected {
			up = 1
		}
		gauge(linkDesc, up, e.c.cfg.Collectors[i])
	}
	counter(datagramsDesc, datagrams)
	counter(bytesDesc, bytes)
	gauge(reportersDesc, float64(reporters))
	counter(restartsDesc, restarts)
	var total translate.Stats
	for _, s := range st.Shards {
		total = total.Plus(s)
	}
	counter(reportsDesc, total.KeyWrites, "key-write")
	counter(reportsDesc, total.KeyIncrements, "key-increment")
	counter(reportsDesc, total.Appends, "append")
	counter(reportsDesc, total.Postcards.Postcards, "postcarding")
	counter(pathsDesc, total.Postcards.Complete, "complete")
	counter(pathsDesc, total.Postcards.Evicted, "evicted")
	counter(pathsDesc, total.Postcards.Superseded, "superseded")
	counter(pathsDesc, total.Postcards.Expired, "expired")
	counter(batchesDesc, total.Batches)
	counter(matchesDesc, total.Matches+total.Heavy)
	counter(noticesDesc, st.Notices)
	index := map[string]int{}
	for _, m := range st.Memory {
		i := strconv.Itoa(index[m.Kind])
		index[m.Kind]++
		gauge(memoryDesc, float64(m.Bytes), m.Kind, i)
		counter(writesDesc, m.Counts.Writes, m.Kind, i)
	}
}
