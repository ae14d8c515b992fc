package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// call is a request and its expected status.
type call struct {
	id, method, path, body string
	status                 int
}

// calls returns at least one request for every operation of the document, in an
// order that works.
func calls(k *fake) []call {
	flow := url.PathEscape(k.flow(1).String())
	sw := k.fabric.Node(k.fabric.Switches()[0]).Name
	first := k.fabric.Node(k.fabric.Switches()[0]).Ports[0].Name // of port 1
	return []call{
		{"get-topology", "GET", "/topology", "", 200},
		{"get-state", "GET", "/state", "", 200},
		{"get-state", "GET", "/state?at=2026-01-02T15:04:04Z", "", 200},
		{"get-state", "GET", "/state?at=0001-01-01T00:00:01Z", "", 422},
		{"get-state", "GET", "/state?pods=0,-1", "", 200},
		{"get-state", "GET", "/state?since=unknown-1&pods=1", "", 200},
		{"get-state", "GET", "/state?since=unknown-1&at=2026-01-02T15:04:04Z", "", 422},
		{"get-state", "GET", "/state?at=2026-01-02T15:04:04Z&pods=2", "", 200},
		{"get-state", "GET", "/state?pods=4", "", 404},
		{"get-state", "GET", "/state?pods=-2", "", 422},
		{"get-topology", "GET", "/topology?pods=3", "", 200},
		{"get-topology", "GET", "/topology?pods=99", "", 404},
		{"get-overview", "GET", "/overview", "", 200},
		{"get-clock", "GET", "/clock", "", 200},
		{"set-pace", "PUT", "/clock", `{"pace":2}`, 200},
		{"set-pace", "PUT", "/clock", `{"pace":20}`, 422},
		{"set-pace", "PUT", "/clock", `{"pace":-1}`, 422},
		{"list-incidents", "GET", "/incidents", "", 200},
		{"list-incidents", "GET", "/incidents?state=open&severity=warning&cause=incast&limit=1", "", 200},
		{"list-incidents", "GET", "/incidents?state=ajar", "", 422},
		{"list-incidents", "GET", "/incidents?limit=100000", "", 422},
		{"list-incidents", "GET", "/incidents?after=x", "", 422},
		{"list-incidents", "GET", "/incidents?colour=red", "", 422},
		{"get-incident", "GET", "/incidents/inc-0", "", 200},
		{"get-incident", "GET", "/incidents/inc-77", "", 404},
		{"act-on-incident", "POST", "/incidents/inc-0/actions", `{"kind":"ack"}`, 201},
		{"act-on-incident", "POST", "/incidents/inc-0/actions", `{"kind":"mute","for_ms":3600000,"text":"known"}`, 201},
		{"act-on-incident", "POST", "/incidents/inc-0/actions", `{"kind":"mute"}`, 422},
		{"act-on-incident", "POST", "/incidents/inc-0/actions", `{"kind":"verify","text":"forged"}`, 422},
		{"act-on-incident", "POST", "/incidents/inc-77/actions", `{"kind":"ack"}`, 404},
		{"verify-incident", "POST", "/incidents/inc-0/verify", "", 201},
		{"verify-incident", "POST", "/incidents/inc-77/verify", "", 404},
		{"act-on-incident", "POST", "/incidents/inc-0/actions", `{"kind":"prove","text":"proven: forged"}`, 422},
		{"prove-incident", "POST", "/incidents/inc-0/prove", "", 201},
		{"prove-incident", "POST", "/incidents/inc-77/prove", "", 404},
		{"list-diagnoses", "GET", "/diagnoses", "", 200},
		{"list-diagnoses", "GET", "/diagnoses?flow=nonsense", "", 422},
		{"get-diagnosis", "GET", "/diagnoses/d-0", "", 200},
		{"get-diagnosis", "GET", "/diagnoses/d-0?format=dot", "", 200},
		{"get-diagnosis", "GET", "/diagnoses/d-0?format=svg", "", 200},
		{"get-diagnosis", "GET", "/diagnoses/d-0?format=png", "", 422},
		{"get-diagnosis", "GET", "/diagnoses/none", "", 404},
		{"list-flows", "GET", "/flows", "", 200},
		{"list-flow-groups", "GET", "/flow-groups?group_by=port&steps=60&filter=udp&last=90s", "", 200},
		{"list-flow-groups", "GET", "/flow-groups?group_by=colour", "", 422},
		{"list-jobs", "GET", "/jobs?last=90s", "", 200},
		{"list-jobs", "GET", "/jobs?last=soon", "", 422},
		{"get-job", "GET", "/jobs/none?last=90s", "", 404},
		{"list-flow-groups", "GET", "/flow-groups?filter=flow.colour", "", 422},
		{
			"list-flows", "GET", "/flows?sort=lost&limit=2&last=90s&filter=" + url.QueryEscape("udp && flow.bytes > 1KB"),
			"", 200,
		},
		{"list-flows", "GET", "/flows?filter=" + url.QueryEscape("udp &&"), "", 422},
		{"list-flows", "GET", "/flows?last=never", "", 422},
		{"list-flows", "GET", "/flows?from=1970-01-01T00:00:00Z", "", 422},
		{"list-flows", "GET", "/flows?from=0001-01-01T00:00:01Z&to=9999-01-01T00:00:00Z", "", 422},
		{"list-flows", "GET", "/flows?from=2026-01-02T15:04:05Z&to=2026-01-02T15:04:00Z", "", 422},
		{"list-flows", "GET", "/flows?from=yesterday", "", 422},
		{"get-flow", "GET", "/flows/" + flow, "", 200},
		{"get-flow", "GET", "/flows/" + url.PathEscape("tcp 9.9.9.9:1 > 8.8.8.8:2"), "", 200},
		{"get-flow", "GET", "/flows/nonsense", "", 422},
		{"get-flow", "GET", "/flows/-", "", 422},
		{"list-routes", "GET", "/routes", "", 200},
		{"list-routes", "GET", "/routes?switch=tor0&drift=true&limit=3", "", 200},
		{"list-routes", "GET", "/routes?switch=h0", "", 404},
		{"list-routes", "GET", "/routes?limit=0", "", 422},
		{"list-flow-findings", "GET", "/flow-findings", "", 200},
		{"list-flow-findings", "GET", "/flow-findings?last=1s", "", 200},
		{"list-flow-findings", "GET", "/flow-findings?last=never", "", 422},
		{"list-flow-findings", "GET", "/flow-findings?from=2026-01-02T15:04:05Z&to=2026-01-02T15:04:00Z", "", 422},
		{"list-flow-findings", "GET", "/flow-findings?limit=3", "", 200},
		{"list-flow-findings", "GET", "/flow-findings?after=x", "", 422},
		{"list-flow-findings", "GET", "/flow-findings?after=1.2.-3", "", 422},
		{"list-flow-findings", "GET", "/flow-findings?after=1.2.99999999999999999999", "", 422},
		{"list-traces", "GET", "/traces?end=lost&limit=3&filter=" + url.QueryEscape("udp.port == 4001 && hop.switch == "+sw), "", 200},
		{"get-trace", "GET", "/traces/1", "", 200},
		{"get-trace", "GET", "/traces/99999", "", 404},
		{"get-trace", "GET", "/traces/x", "", 422},
		{"get-trace-pcapng", "GET", "/traces/1.pcapng", "", 200},
		{"get-trace-pcapng", "GET", "/traces/18446744073709551616.pcapng", "", 422},
		{"list-counters", "GET", "/counters", "", 200},
		{"add-counter", "POST", "/counters", `{"name":"rdma","filter":"udp.dstport == 4791"}`, 201},
		{"add-counter", "POST", "/counters", `{"name":"bad","filter":"udp.dstport =="}`, 422},
		{"add-counter", "POST", "/counters", `{"name":"../etc","filter":"udp"}`, 422},
		{"get-counter", "GET", "/counters/tcp-syn?last=30s", "", 200},
		{"get-counter", "GET", "/counters/none", "", 404},
		{"remove-counter", "DELETE", "/counters/rdma", "", 204},
		{"remove-counter", "DELETE", "/counters/rdma", "", 404},
		{"get-ports-now", "GET", "/ports/now", "", 200},
		{"get-ports-now", "GET", "/ports/now?node=tor0", "", 200},
		{"get-ports-now", "GET", "/ports/now?node=h0", "", 404},
		{"get-port-now", "GET", "/ports/now/tor0/" + first, "", 200},
		{"get-port-now", "GET", "/ports/now/tor0/2", "", 404},
		{"get-port-now", "GET", "/ports/now/h0/1", "", 404},
		{"get-port-now", "GET", "/ports/now/none/1", "", 404},
		{"get-flow-postcards", "GET", "/flows/" + flow + "/postcards", "", 200},
		{"get-flow-postcards", "GET", "/flows/nonsense/postcards", "", 422},
		{"get-flow-postcards", "GET", "/flows/-/postcards", "", 422},
		{"get-host-counters", "GET", "/hosts/h0/counters", "", 200},
		{"get-host-counters", "GET", "/hosts/h0/counters?class=7", "", 200},
		{"get-host-counters", "GET", "/hosts/h0/counters?class=8", "", 422},
		{"get-host-counters", "GET", "/hosts/tor0/counters", "", 404},
		{"get-host-counters", "GET", "/hosts/none/counters", "", 404},
		{"get-heatmap", "GET", "/ports/heatmap?last=200s&steps=20&metric=queue_bytes&top=2", "", 200},
		{"get-heatmap", "GET", "/ports/heatmap?steps=601", "", 422},
		{"get-port", "GET", "/ports/" + sw + "/1?last=60s", "", 200},
		{"get-port", "GET", "/ports/" + sw + "/1?step=1ns", "", 422},
		{"get-port", "GET", "/ports/" + sw + "/99", "", 404},
		{"get-port", "GET", "/ports/unknown/1", "", 404},
		{"get-port", "GET", "/ports/" + sw + "/65536", "", 404},
		{"get-port", "GET", "/ports/" + sw + "/0", "", 404},
		{"get-port", "GET", "/ports/" + sw + "/cpu", "", 404},
		{"get-port", "GET", "/ports/" + sw + "/" + first + "?last=60s", "", 200},
		{"get-port", "GET", "/ports/" + sw + "/Ethernet77", "", 404},
		{"get-port-counters", "GET", "/ports/" + sw + "/" + first + "/counters?last=60s", "", 200},
		{"get-port-counters", "GET", "/ports/" + sw + "/Ethernet77/counters", "", 404},
		{"list-traces", "GET", "/traces?limit=3&filter=" + url.QueryEscape("hop.in == "+first), "", 200},
		{"list-traces", "GET", "/traces?limit=3&filter=" + url.QueryEscape("hop.in == Ethernet77"), "", 422},
		{"start-probe", "POST", "/probes", fmt.Sprintf(`{"kind":"flow","flow":%q}`, k.flow(1)), 201},
		{"start-probe", "POST", "/probes", `{"kind":"link"}`, 422},
		{"start-probe", "POST", "/probes", `{"kind":"flow"}`, 422},
		{"start-probe", "POST", "/probes", `{"kind":"link","link":{"node":"` + sw + `","port":1},"count":100000}`, 422},
		{"start-probe", "POST", "/probes", `{"kind":"link","link":{"node":"` + sw + `","port":1}}`, 201},
		{"start-probe", "POST", "/probes", `{"kind":"link","link":{"node":"` + sw + `","interface":"` + first + `"}}`, 201},
		{
			"start-probe", "POST", "/probes",
			`{"kind":"link","link":{"node":"` + sw + `","port":2,"interface":"` + first + `"}}`, 422,
		},
		{"start-probe", "POST", "/probes", `{"kind":"link","link":{"node":"` + sw + `"}}`, 422},
		{"list-probes", "GET", "/probes", "", 200},
		{"get-probe", "GET", "/probes/p-0", "", 200},
		{"get-probe", "GET", "/probes/p-9", "", 404},
		{"set-mark", "POST", "/marks", `{"host":"h0","duration_ms":100}`, 201},
		{"set-mark", "POST", "/marks", `{"host":"unknown"}`, 404},
		{"set-mark", "POST", "/marks", `{"host":"h0","filter":"tcp"}`, 422},
		{"list-marks", "GET", "/marks", "", 200},
		{"remove-mark", "DELETE", "/marks/m-0", "", 204},
		{"remove-mark", "DELETE", "/marks/m-0", "", 404},
		{"list-fault-kinds", "GET", "/faults/kinds", "", 200},
		{"inject-fault", "POST", "/faults", `{"kind":"blackhole","node":"` + sw + `","port":1}`, 201},
		{"inject-fault", "POST", "/faults", `{"kind":"blackhole","node":"` + sw + `","port":77}`, 422},
		{"inject-fault", "POST", "/faults", `{"kind":"blackhole","node":"` + sw + `","interface":"` + first + `"}`, 201},
		{"inject-fault", "POST", "/faults", `{"kind":"blackhole","node":"` + sw + `","interface":"Ethernet77"}`, 422},
		{"inject-fault", "POST", "/faults", `{"kind":"meteor"}`, 422},
		{"list-faults", "GET", "/faults", "", 200},
		{"get-health", "GET", "/health", "", 200},
		{"get-sources", "GET", "/sources", "", 200},
		{"complete-filter", "GET", "/filter/complete?text=ip.s", "", 200},
		{"complete-filter", "GET", "/filter/complete?of=traces&text=" + url.QueryEscape("hop.switch == "), "", 200},
		{"complete-filter", "GET", "/filter/complete?of=packets&text=tcp&at=1", "", 200},
		{"report-slow-flow", "POST", "/slow-flows", fmt.Sprintf(`{"flow":%q}`, k.flow(0)), 202},
		{"report-slow-flow", "POST", "/slow-flows?wait_ms=1000", fmt.Sprintf(`{"flow":%q}`, k.flow(0)), 202},
		{"report-slow-flow", "POST", "/slow-flows", `{"flow":"-"}`, 422},
		{"report-slow-flow", "POST", "/slow-flows", `{"flow":7}`, 422},
		{"list-slow-flows", "GET", "/slow-flows", "", 200},
		{"get-slow-flow", "GET", "/slow-flows/c-0", "", 200},
		{"get-slow-flow", "GET", "/slow-flows/c-9", "", 404},
	}
}

// do sends a request to a handler and returns the response.
func do(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestRoutes calls every operation of the document and validates the responses
// against its schemas.
func TestRoutes(t *testing.T) {
	s, k := newServer(t)
	doc := s.api.OpenAPI()
	ops := map[string]*huma.Operation{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil {
				ops[op.OperationID] = op
			}
		}
	}
	called := map[string]bool{"get-events": true, "get-job": true} // TestEvents and TestJobs do
	for _, c := range calls(k) {
		op := ops[c.id]
		if op == nil {
			t.Fatalf("%s is not in the document", c.id)
		}
		called[c.id] = called[c.id] || c.status < 300
		w := do(s.Handler(), c.method, Prefix+c.path, c.body)
		if w.Code != c.status {
			t.Errorf("%s %s %s = %d %s; want %d", c.method, c.path, c.body, w.Code, w.Body, c.status)
			continue
		}
		checkAnswer(t, doc, op, c, w)
	}
	for id := range ops {
		if !called[id] {
			t.Errorf("no call of operation %s succeeds", id)
		}
	}
}

// checkAnswer validates one response against the document.
func checkAnswer(t *testing.T, doc *huma.OpenAPI, op *huma.Operation, c call, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code == http.StatusNoContent {
		if w.Body.Len() > 0 {
			t.Errorf("%s %s: a body without content: %s", c.method, c.path, w.Body)
		}
		return
	}
	declared := op.Responses[fmt.Sprint(w.Code)]
	if w.Code >= 300 {
		declared = op.Responses["default"]
	}
	if declared == nil {
		t.Errorf("%s: status %d is not declared", c.id, w.Code)
		return
	}
	typ, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	media := declared.Content[typ]
	if media == nil {
		t.Errorf("%s %s: content type %q is not declared", c.method, c.path, typ)
		return
	}
	if !strings.HasSuffix(typ, "json") {
		return
	}
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Errorf("%s %s: %v", c.method, c.path, err)
		return
	}
	var res huma.ValidateResult
	huma.Validate(doc.Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &res)
	for _, e := range res.Errors {
		t.Errorf("%s %s: the response is not as documented: %v\n%.600s", c.method, c.path, e, w.Body)
	}
}

// TestProblems: every error is a problem, also of paths outside the API.
func TestProblems(t *testing.T) {
	s, k := newServer(t)
	k.fail = errDisk
	for path, want := range map[string]int{
		Prefix + "/incidents": 500, Prefix + "/nothing": 404, "/nothing.js": 404, "/": 404, Prefix + "/topology/": 404,
	} {
		w := do(s.Handler(), "GET", path, "")
		var p huma.ErrorModel
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != want || p.Status != want ||
			w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("GET %s = %d %s %s; want a problem with status %d", path, w.Code, w.Header().Get("Content-Type"),
				w.Body, want)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("GET %s exposes internals: %s", path, w.Body)
		}
	}
	if w := do(s.Handler(), "POST", Prefix+"/topology", "{}"); w.Code != 405 ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("POST to a read-only route = %d %s", w.Code, w.Body)
	}
}

// TestOperationalRoutes: health checks, version, metrics and document.
func TestOperationalRoutes(t *testing.T) {
	s, k := newServer(t)
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ready", "/version": `"commit":"abc"`,
		"/metrics": "weft_build_info", "/openapi.json": `"openapi":"3.1.0"`,
	} {
		if w := do(s.Handler(), "GET", path, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s = %d %.100s; want %q", path, w.Code, w.Body, want)
		}
	}
	k.fail = errDisk
	if w := do(s.Handler(), "GET", "/readyz", ""); w.Code != 503 {
		t.Errorf("/readyz of a controller that is not ready = %d", w.Code)
	}
}

// TestMissingBackends: without a backend its routes return 404 or 501.
func TestMissingBackends(t *testing.T) {
	s, _ := newServer(t, func(_ *Config, d *Deps) {
		d.Lab, d.Prober, d.Marker, d.CounterAdmin, d.Diagnoser, d.FlowAnalyses, d.Routes = nil, nil, nil, nil, nil, nil, nil
		d.Handling = nil
	})
	for _, c := range []call{
		{"", "GET", "/faults/kinds", "", 404},
		{"", "GET", "/faults", "", 404},
		{"", "POST", "/faults", `{"kind":"incast"}`, 404},
		{"", "PUT", "/clock", `{"pace":1}`, 404},
		{"", "GET", "/probes", "", 501},
		{"", "GET", "/marks", "", 501},
		{"", "GET", "/counters", "", 501},
		{"", "GET", "/flow-findings", "", 501},
		{"", "GET", "/routes", "", 501},
		{"", "GET", "/incidents/inc-0", "", 200},
		{"", "POST", "/incidents/inc-0/actions", `{"kind":"ack"}`, 501},
		{"", "POST", "/slow-flows", `{"flow":"udp 10.0.0.2:1 > 10.0.0.3:2"}`, 501},
	} {
		if w := do(s.Handler(), c.method, Prefix+c.path, c.body); w.Code != c.status {
			t.Errorf("%s %s = %d %s; want %d", c.method, c.path, w.Code, w.Body, c.status)
		}
	}
}

// TestTracePcapng: the file has one frame per hop, as the hop saw it.
func TestTracePcapng(t *testing.T) {
	s, k := newServer(t)
	w := do(s.Handler(), "GET", Prefix+"/traces/1.pcapng", "")
	r, err := pcapgo.NewNgReader(bytes.NewReader(w.Body.Bytes()), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	tr := &k.batch.Traces[0]
	for i := 0; ; i++ {
		data, info, err := r.ReadPacketData()
		if err == io.EOF {
			if i != len(tr.Hops) {
				t.Errorf("%d frames, want %d", i, len(tr.Hops))
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var ip layers.IPv4
		if err := ip.DecodeFromBytes(data[14:], nil); err != nil {
			t.Fatal(err)
		}
		intf, err := r.Interface(info.InterfaceIndex)
		h := tr.Hops[i]
		if err != nil || intf.Name != h.Switch || ip.TTL != h.TTL || ip.TOS != h.DSCP<<2|h.ECN ||
			!info.Timestamp.Equal(h.Time) {
			t.Errorf("frame %d: %s TTL %d TOS %#x at %v; want %+v", i, intf.Name, ip.TTL, ip.TOS, info.Timestamp, h)
		}
		var sum uint32
		for j := 14; j < 34; j += 2 {
			sum += uint32(data[j])<<8 | uint32(data[j+1])
		}
		if sum = sum>>16 + sum&0xffff; sum != 0xffff {
			t.Errorf("frame %d: header checksum sums up to %#x", i, sum)
		}
	}
}
