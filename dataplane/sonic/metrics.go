package sonic

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weft-telemetry/weft/topo"
)

// Metrics exports the high-frequency telemetry of all switches of a fabric by OTLP over gRPC, as
// SONiC's countersyncd does. Switches share an address here, so that the resource names them.
type Metrics struct {
	conn  *grpc.ClientConn
	queue chan metricsRound

	sent, failed, skipped atomic.Uint64
}

// metricsRound is the counters of a switch.
type metricsRound struct {
	node *topo.Node
	*round
}

// waitingPerSwitch rounds of a switch wait for the collector; later ones are skipped and counted.
const waitingPerSwitch = 16

// sendTimeout is how long a request may take, also the last ones after the end of a run.
const sendTimeout = 5 * time.Second

// NewMetrics exports to a collector at HOST:PORT, without TLS.
func NewMetrics(f *topo.Fabric, collector string) (*Metrics, error) {
	conn, err := grpc.NewClient("passthrough:///"+collector, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("sonic: OTLP to %s: %w", collector, err)
	}
	return &Metrics{conn: conn, queue: make(chan metricsRound, waitingPerSwitch*len(f.Switches()))}, nil
}

// publish has a round exported, if the collector is not too slow.
func (m *Metrics) publish(n *topo.Node, r *round) {
	select {
	case m.queue <- metricsRound{n, r}:
	default:
		m.skipped.Add(1)
	}
}

// Run exports until ctx ends, then what waits.
func (m *Metrics) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
			defer cancel()
			for {
				select {
				case r := <-m.queue:
					m.export(end, r)
				default:
					return m.conn.Close()
				}
			}
		case r := <-m.queue:
			m.export(ctx, r)
		}
	}
}

// export sends one request. A collector that is away is waited for, for a time: what waits behind
// is bounded.
func (m *Metrics) export(ctx context.Context, r metricsRound) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	const method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
	if m.conn.Invoke(ctx, method, r.request(), &emptypb.Empty{}, grpc.WaitForReady(true)) != nil {
		m.failed.Add(1)
		return
	}
	m.sent.Add(1)
}

// MetricsStats count requests: one is a round of a switch.
type MetricsStats struct {
	Sent    uint64
	Failed  uint64 // the collector refused them, or did not answer
	Skipped uint64 // the collector was too slow
}

// Stats returns the counters.
func (m *Metrics) Stats() MetricsStats {
	return MetricsStats{m.sent.Load(), m.failed.Load(), m.skipped.Load()}
}

// request is the metrics of a round: of each counter a gauge, with a point per object.
func (r *metricsRound) request() *metricspb.MetricsData {
	b := gauges{at: uint64(r.at), index: map[[2]int]int{}}
	var list []counter
	for i := range r.ports {
		name := r.node.Ports[i].Name
		list = portCounters(list[:0], &r.ports[i])
		b.add(objectPort, name, list)
		for class := range r.ports[i].Class {
			object, k := name+"|"+strconv.Itoa(class), &r.ports[i].Class[class]
			list = queueCounters(list[:0], k)
			b.add(objectQueue, object, list)
			list = groupCounters(list[:0], k)
			b.add(objectPriorityGroup, object, list)
		}
	}
	resource := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "countersyncd"), attribute("host.name", r.node.Name)}}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: resource, ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: b.metrics}},
	}}}
}

// gauges collects points by counter.
type gauges struct {
	at      uint64
	metrics []*metricspb.Metric
	index   map[[2]int]int // of metrics, by object type and counter
}

func (g *gauges) add(object int, name string, list []counter) {
	label := attribute("object_name", name)
	for _, c := range list {
		if c.number < 0 {
			continue
		}
		key := [2]int{object, c.number}
		i, known := g.index[key]
		if !known {
			i = len(g.metrics)
			g.index[key] = i
			g.metrics = append(g.metrics, &metricspb.Metric{
				Name: fmt.Sprintf("sai_counter_type_%d_stat_%d", object, c.number), Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{}},
			})
		}
		gauge := g.metrics[i].GetGauge()
		gauge.DataPoints = append(gauge.DataPoints, &metricspb.NumberDataPoint{
			TimeUnixNano: g.at, Value: &metricspb.NumberDataPoint_AsInt{AsInt: int64(c.value)}, Attributes: []*commonpb.KeyValue{label},
		})
	}
}

func attribute(key, text string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}}
}
