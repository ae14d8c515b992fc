package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/grpcsource"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// fabric has the switch tor0, which sends from 127.0.0.1, with ports Ethernet0 and 4 at 100 Gb/s, and tor1,
// which sends from 10.0.0.6 alone.
func fabric(t testing.TB) *source.Fabric {
	port := func(text string) (model.PortID, bool) {
		k, err := strconv.Atoi(strings.TrimPrefix(text, "Ethernet"))
		return model.PortID(k/4 + 1), err == nil && strings.HasPrefix(text, "Ethernet") && k%4 == 0 && k <= 4
	}
	rate := func(model.PortID) model.Rate { return 100e9 }
	local, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.6")
	ids, err := identity.New([]identity.Switch{
		{ID: 5, Name: "tor0", Addrs: []netip.Addr{local}, Ports: 2, Port: port}, {ID: 6, Name: "tor1", Addrs: []netip.Addr{other}, Ports: 2, Port: port},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &source.Fabric{Identity: ids, Switches: []source.Switch{
		{ID: 5, Name: "tor0", Ports: 2, Port: port, Rate: rate},
		{ID: 6, Name: "tor1", Ports: 2, Port: port, Rate: rate, Prefixes: []netip.Prefix{netip.PrefixFrom(other, 32)}},
	}}
}

func attribute(key, text string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}}
}

// point is a metric of one value, as countersyncd makes it.
func point(at model.Time, object, stat int, name string, v int64) *metricspb.Metric {
	p := &metricspb.NumberDataPoint{
		TimeUnixNano: uint64(at), Value: &metricspb.NumberDataPoint_AsInt{AsInt: v}, Attributes: []*commonpb.KeyValue{attribute("object_name", name)},
	}
	return &metricspb.Metric{Name: fmt.Sprintf("sai_counter_type_%d_stat_%d", object, stat), Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{p}}}}
}

func request(host string, metrics ...*metricspb.Metric) *metricspb.MetricsData {
	r := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "countersyncd")}}
	if host != "" {
		r.Attributes = append(r.Attributes, attribute("host.name", host))
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: r, ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: metrics}}}}}
}

// round is all counters of Ethernet4 after n intervals.
func round(at model.Time, n int64) []*metricspb.Metric {
	return []*metricspb.Metric{
		point(at, 1, 0, "Ethernet4", 1000*n), point(at, 1, 9, "Ethernet4", 2000*n), point(at, 1, 109, "Ethernet4", 3*n), point(at, 1, 141, "Ethernet4", 500*n),
		point(at, 21, 0x1b, "Ethernet4|3", 40_000+n), point(at, 26, 7, "Ethernet4|3", 7), point(at, 21, 0x18, "Ethernet4|3", 5), point(at, 21, 1, "Ethernet400|3", 5),
	}
}

func newTestDecoder(t testing.TB) (*decoder, *[]portstat.Reading) {
	var list []portstat.Reading
	d, err := Source.NewConfig().(*Config).NewDecoder(fabric(t), source.Output{Reading: func(r *portstat.Reading) { list = append(list, *r) }})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*decoder), &list
}

func marshal(t testing.TB, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const t0 = model.Time(1_000_000 * time.Second)

var local = netip.MustParseAddrPort("127.0.0.1:50000")

func lost(c source.Counters, reason string) uint64 {
	for _, l := range c.Losses {
		if l.Reason == reason {
			return l.Count
		}
	}
	return 0
}

// TestRounds: counters of high-frequency telemetry, one by one, become readings of a port
// with its queues.
func TestRounds(t *testing.T) {
	d, readings := newTestDecoder(t)
	for n := range int64(4) {
		at := t0.Add(time.Duration(n) * 50 * time.Millisecond)
		if !d.Decode(at, local, marshal(t, request("", round(at, n)...))) {
			t.Fatal("a request was of no use")
		}
	}
	if len(*readings) != 2 { // the first round is the baseline, the last not yet ended
		t.Fatalf("%d readings; want 2", len(*readings))
	}
	for i, r := range *readings {
		k := &r.Class[3]
		if r.Port != (model.Port{Node: 5, Port: 2}) || r.Source != portstat.OTLP || r.Interval() != 50*time.Millisecond || r.RxBytes != 1000 || r.TxBytes != 2000 ||
			k.RxPauses != 3 || k.RxPaused != 500*time.Microsecond || k.QueueWatermark != model.Bytes(40_001+i) || k.HeadroomWatermark != 7 {
			t.Errorf("reading %d is %+v; want the counters of one round", i, r)
		}
	}
	c := d.Counters()
	if c.In != 4*8 || c.Out != 4*6 || lost(c, "other metric") != 4 || lost(c, "unknown port") != 4 {
		t.Errorf("%+v; want 6 of 8 points used in each of 4 rounds", c)
	}
}

// TestShortIntervals: counters that come every millisecond are readings of 10 ms, and no byte is missing.
func TestShortIntervals(t *testing.T) {
	d, readings := newTestDecoder(t)
	for n := range int64(101) {
		at := t0.Add(time.Duration(n) * time.Millisecond)
		d.Decode(at, local, marshal(t, request("", round(at, n)...)))
	}
	var sum uint64
	for i := range *readings {
		if iv := (*readings)[i].Interval(); iv < 10*time.Millisecond {
			t.Errorf("a reading of %v; want 10 ms at least", iv)
		}
		sum += (*readings)[i].RxBytes
	}
	if len(*readings) != 9 || sum != 90*1000 {
		t.Errorf("%d readings of %d bytes; want 9 of 90,000: what follows has not ended", len(*readings), sum)
	}
}

func TestIdentity(t *testing.T) {
	d, _ := newTestDecoder(t)
	for name, tc := range map[string]struct {
		host   string
		from   string
		reason string
	}{
		"by address":                {"", "127.0.0.1:1", ""},
		"by name":                   {"tor1", "10.0.0.6:1", ""},
		"another's name":            {"tor1", "127.0.0.1:1", "address not allowed"},
		"an address of no switch":   {"", "192.0.2.1:1", "unknown sender"},
		"a name of no switch":       {"x", "192.0.2.1:1", "unknown sender"},
		"its address, not its name": {"x", "10.0.0.6:1", ""},
	} {
		before := d.Counters()
		used := d.Decode(t0, netip.MustParseAddrPort(tc.from), marshal(t, request(tc.host, round(t0, 1)...)))
		if used != (tc.reason == "") || tc.reason != "" && lost(d.Counters(), tc.reason) != lost(before, tc.reason)+1 {
			t.Errorf("%s: used %t, %+v; want reason %q", name, used, d.Counters().Losses, tc.reason)
		}
	}
}

func TestHostileSenders(t *testing.T) {
	d, readings := newTestDecoder(t)
	d.Decode(t0, local, []byte{0xff})
	d.Decode(t0, local, marshal(t, request("", round(1, 1)...)))                                      // of 1970
	d.Decode(t0, local, marshal(t, request("", point(t0, 1, 0, "Ethernet0", -5))))                    // negative
	d.Decode(t0, local, marshal(t, request("", &metricspb.Metric{Name: "sai_counter_type_1_stat_"}))) // no points
	c := d.Counters()
	if lost(c, "malformed") != 1 || lost(c, "clock") != 7 || lost(c, "other metric") != 2 || len(*readings) != 0 {
		t.Errorf("%+v, readings %+v; want all counted and none made", c, *readings)
	}
}

// FuzzDecode: no request panics.
func FuzzDecode(f *testing.F) {
	f.Add(marshal(f, request("tor0", round(t0, 1)...)))
	d, _ := newTestDecoder(f)
	f.Fuzz(func(_ *testing.T, b []byte) { d.Decode(t0, local, b) })
}

// allowFirst admits a number of requests.
type allowFirst struct{ n int }

func (g *allowFirst) Datagram(model.Time, netip.Addr) translate.Refusal {
	if g.n--; g.n < 0 {
		return translate.AddressNotAllowed
	}
	return translate.Admitted
}

func (*allowFirst) Refused(netip.Addr, translate.Refusal, int) {}

// TestGRPCAndHTTP: both transports take the same request over real sockets; what the guard
// refuses, what is too long and what is no protobuf is answered and counted.
func TestGRPCAndHTTP(t *testing.T) {
	c := Source.NewConfig().(*Config)
	c.Listen, c.HTTPListen = netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:0")
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	d, readings := newTestDecoder(t)
	l, err := listen(c, d, &allowFirst{3})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended, tapped := make(chan error, 1), make(chan int, 10)
	go func() {
		ended <- l.Run(ctx, func(_ model.Time, _, _ netip.AddrPort, data []byte, used bool) { tapped <- len(data) })
	}()

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	now := model.TimeOf(time.Now())
	method := "/" + service.ServiceName + "/Export"
	export := func(n int64, options ...grpc.CallOption) error {
		at := now.Add(time.Duration(n) * 50 * time.Millisecond)
		return conn.Invoke(t.Context(), method, request("", round(at, n)...), &metricspb.MetricsData{}, append(options, grpc.WaitForReady(true))...)
	}
	if err := export(0); err != nil {
		t.Fatal(err)
	}
	if err := export(1, grpc.UseCompressor("gzip")); err != nil {
		t.Fatal(err)
	}
	post := func(body []byte, kind, encoding string) int {
		r, err := http.NewRequest(http.MethodPost, "http://"+l.http.Addr().String()+"/v1/metrics", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Content-Encoding", encoding)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	zip := func(b []byte) []byte {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(b)
		w.Close()
		return z.Bytes()
	}
	body := marshal(t, request("", round(now.Add(100*time.Millisecond), 2)...))
	const protobuf = "application/x-protobuf"
	for i, tc := range []struct {
		body           []byte
		kind, encoding string
		want           int
	}{
		{zip(body), protobuf, "gzip", 200},
		{body, protobuf, "", 403}, // the guard admits no more
		{[]byte("{}"), "application/json", "", 415},
		{zip(make([]byte, grpcsource.MaxMessage+1)), protobuf, "gzip", 413},
		{[]byte("x"), protobuf, "gzip", 400},
		{body, protobuf, "br", 400},
	} {
		if got := post(tc.body, tc.kind, tc.encoding); got != tc.want {
			t.Errorf("request %d is answered %d; want %d", i, got, tc.want)
		}
	}
	if err := export(3); status.Code(err) != codes.PermissionDenied {
		t.Errorf("gRPC answers %v to a refused request; want PermissionDenied", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(*readings) != 1 || (*readings)[0].RxBytes != 1000 {
		t.Errorf("readings %+v; want the one between two rounds", *readings)
	}
	if got := l.Counters(); lost(got, "address not allowed") != 2 || lost(got, "too long") != 1 || lost(got, "other type") != 1 || len(tapped) != 3 {
		t.Errorf("%+v, %d recorded; want 2 refused, 1 too long, 1 of another type, 3 recorded", got.Losses, len(tapped))
	}
}
