package hostagent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

var (
	verdictsDesc = prometheus.NewDesc("weft_host_verdicts_total", "Verdicts by what is faulty, once in each interval.", []string{"where"}, nil)
	slowDesc     = prometheus.NewDesc("weft_host_slow_connections_total", "Slow TCP connections, once in each interval.", nil, nil)
	reportsDesc  = prometheus.NewDesc("weft_host_diagnosis_requests_total", "Requests of a diagnosis of a slow connection, by result.", []string{"result"}, nil)
	counterDesc  = prometheus.NewDesc("weft_host_counter_total", "Counters of drivers and RDMA ports, by meaning.", []string{"object", "counter"}, nil)
	pairsDesc    = prometheus.NewDesc("weft_host_queue_pairs", "RDMA queue pairs, by who owns them: the name of a program, or of a module of the kernel.", []string{"device", "type", "state", "process"}, nil)
	dropsDesc    = prometheus.NewDesc("weft_host_dropped_packets_total", "Packets that the kernel dropped, by its reason.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (a *Agent) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(a, ch) }

// Collect implements prometheus.Collector.
func (a *Agent) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	for _, w := range []evidence.Where{evidence.Cable, evidence.NIC, evidence.Host, evidence.Congestion, evidence.Peer, evidence.Path} {
		counter(verdictsDesc, a.stats.Verdicts[w], string(w))
	}
	counter(slowDesc, a.stats.Slow)
	counter(reportsDesc, a.stats.Reported, "requested")
	counter(reportsDesc, a.stats.Refused, "failed")
	counter(reportsDesc, a.stats.Skipped, "skipped")
	if a.last == nil {
		return
	}
	for i := range a.last.Interfaces {
		in := &a.last.Interfaces[i]
		for m, n := range in.Driver {
			counter(counterDesc, n, in.Name, string(m))
		}
	}
	for i := range a.last.RDMA {
		p := &a.last.RDMA[i]
		for m, n := range p.Counters {
			counter(counterDesc, n, fmt.Sprintf("%s/%d", p.Device, p.Port), string(m))
		}
	}
	pairs := map[[4]string]int{}
	for i := range a.last.QueuePairs {
		q := &a.last.QueuePairs[i]
		pairs[[4]string{q.Device, q.Type, q.State, q.Process}]++
	}
	for labels, n := range pairs {
		ch <- prometheus.MustNewConstMetric(pairsDesc, prometheus.GaugeValue, float64(n), labels[:]...)
	}
	for reason, n := range a.last.Drops {
		counter(dropsDesc, n, reason)
	}
}
