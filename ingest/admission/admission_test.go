package admission

import (
	"bytes"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/poll"
)

// The fabric of these tests: two hosts, and two switches of four ports. The second
// switch has an address.
const (
	host0, host1, tor0, tor1 model.NodeID = 0, 1, 2, 3

	labels, mirrors, epochs, requests, unplanned dta.ListID = 4, 5, 6, 7, 8
)

var (
	anywhere = netip.MustParseAddrPort("192.0.2.1:5000")
	ofTor1   = netip.MustParseAddrPort("10.0.0.3:5000")
	now      = model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
)

func listOf(l dta.ListID) (Kind, model.NodeID) {
	switch {
	case l < labels:
		return Flowset, model.NodeID(l)
	case l < unplanned:
		return Label + Kind(l-labels), 0
	}
	return Unplanned, 0
}

func newGuard(t testing.TB, cfg GuardConfig) *Guard {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	g, err := NewGuard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newPolicy(t testing.TB, change func(*Config)) *Policy {
	t.Helper()
	cfg := Config{
		Nodes: []Node{
			{Name: "h0", Ports: 1},
			{Name: "h1", Ports: 1},
			{Name: "tor0", Switch: true, Ports: 4},
			{Name: "tor1", Switch: true, Ports: 4, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.3/32")}},
		},
		List: listOf, Guard: newGuard(t, GuardConfig{}), TimeWindow: 10 * time.Second,
		Attached: func(a model.Addr, sw model.NodeID) bool { return a == addr0 && sw == tor0 },
	}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDatagram(t *testing.T) {
	mapped := netip.AddrPortFrom(netip.AddrFrom16(ofTor1.Addr().As16()), 5000)
	for name, tc := range map[string]struct {
		from   netip.AddrPort
		head   dta.Header
		change func(*Config)
		want   translate.Refusal
	}{
		"no address is known":       {anywhere, dta.Header{Reporter: tor0}, nil, translate.Admitted},
		"its address":               {ofTor1, dta.Header{Reporter: tor1}, nil, translate.Admitted},
		"its address in IPv6":       {mapped, dta.Header{Reporter: tor1}, nil, translate.Admitted},
		"another address":           {anywhere, dta.Header{Reporter: tor1}, nil, translate.AddressNotAllowed},
		"node after the last":       {anywhere, dta.Header{Reporter: 4}, nil, translate.UnknownReporter},
		"largest id":                {anywhere, dta.Header{Reporter: 1<<32 - 1}, nil, translate.UnknownReporter},
		"MAC is required":           {anywhere, dta.Header{Reporter: tor0}, func(c *Config) { c.RequireMAC = true }, translate.NoMAC},
		"MAC is required and there": {anywhere, dta.Header{Reporter: tor0, Signed: true}, func(c *Config) { c.RequireMAC = true }, translate.Admitted},
		"outside of allow": {anywhere, dta.Header{Reporter: tor0}, func(c *Config) {
			c.Guard = newGuard(t, GuardConfig{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		}, translate.AddressNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newPolicy(t, tc.change).Datagram(now, tc.from, &tc.head, 100); got != tc.want {
				t.Errorf("Datagram(from %v, %+v) = %v; want %v", tc.from, tc.head, got, tc.want)
			}
		})
	}
	if got := newPolicy(t, nil).Prototype(now, anywhere, 30); got != translate.PrototypeNotAllowed {
		t.Errorf("Prototype = %v; want %v", got, translate.PrototypeNotAllowed)
	}
}

func chunkOf(sw model.NodeID, scope model.PortID) []byte {
	h := flowset.Header{Switch: sw, Scope: scope, Length: time.Millisecond}
	return flowset.Seal(h.Open(nil, flowset.Span{Count: 1}), 0)
}

func mirrorOf(sw model.NodeID, in, out model.PortID) []byte {
	return (&mirror.Mirror{Reasons: mirror.Debug, Switch: sw, In: in, Out: out, Length: 4, Frame: []byte("wefT")}).AppendTo(nil)
}

func exportOf(sw model.NodeID, items ...label.Item) []byte {
	e := label.Export{Switch: sw, Key: model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.UDP}}
	var block []byte
	for _, it := range items {
		block = it.AppendTo(block)
	}
	option := label.Option{NextHeader: model.UDP, Num: uint8(len(items)), MaxHop: label.DefaultMaxHop}
	if _, err := e.Labels.Parse(append(option.AppendTo(nil), block...)); err != nil {
		panic(err)
	}
	return e.AppendTo(nil)
}

func answerOf(sw model.NodeID) []byte {
	return epoch.Chunk{Header: epoch.Header{Switch: sw, EpochLength: time.Millisecond}, Total: 1}.AppendTo(nil)
}

func requestOf(host model.NodeID) []byte {
	return poll.Poll{Layout: poll.Weft, Flag: poll.Victim, Event: poll.Event{Host: host}, Flow: model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2)}}.AppendTo(nil)
}

// TestReportersReportOfThemselves: nobody reports to another's list, or about
// another switch.
func TestReportersReportOfThemselves(t *testing.T) {
	hop := func(sw model.NodeID, in, out model.PortID) label.Item {
		return label.Item{Switch: sw, Ingress: in, Egress: out}
	}
	for name, tc := range map[string]struct {
		reporter model.NodeID
		list     dta.ListID
		data     []byte
		want     translate.Refusal
	}{
		"flowset":                              {tor0, 2, chunkOf(tor0, 0), translate.Admitted},
		"flowset of a port":                    {tor0, 2, chunkOf(tor0, 4), translate.Admitted},
		"flowset of a port it has not":         {tor0, 2, chunkOf(tor0, 5), translate.UnknownPlace},
		"flowset to another's list":            {tor0, 3, chunkOf(tor0, 0), translate.ForeignList},
		"flowset of another":                   {tor0, 2, chunkOf(tor1, 0), translate.ForeignSwitch},
		"flowset of switch 5000":               {tor0, 2, chunkOf(5000, 0), translate.ForeignSwitch},
		"flowset of a host":                    {host0, 0, chunkOf(host0, 0), translate.ForeignList},
		"flowset that is none":                 {tor0, 2, []byte("no flowset"), translate.Admitted},
		"mirror":                               {tor0, mirrors, mirrorOf(tor0, 1, 4), translate.Admitted},
		"mirror without ports":                 {tor0, mirrors, mirrorOf(tor0, 0, 0), translate.Admitted},
		"mirror of another":                    {tor0, mirrors, mirrorOf(tor1, 1, 2), translate.ForeignSwitch},
		"mirror of a host":                     {host0, mirrors, mirrorOf(tor0, 1, 2), translate.ForeignList},
		"mirror of an unknown ingress port":    {tor0, mirrors, mirrorOf(tor0, 9, 2), translate.UnknownPlace},
		"mirror of an unknown egress port":     {tor0, mirrors, mirrorOf(tor0, 1, 65535), translate.UnknownPlace},
		"mirror that is none":                  {tor0, mirrors, []byte("no mirror at all, but long"), translate.Admitted},
		"labels of the path":                   {tor1, labels, exportOf(tor1, hop(tor1, 1, 2), hop(tor0, 3, 4)), translate.Admitted},
		"labels taken off by another":          {tor0, labels, exportOf(tor1, hop(tor1, 1, 2)), translate.ForeignSwitch},
		"labels of an unknown switch":          {tor1, labels, exportOf(tor1, hop(tor1, 1, 2), hop(77, 1, 2)), translate.UnknownPlace},
		"labels of a host's port":              {tor1, labels, exportOf(tor1, hop(tor1, 1, 2), hop(host0, 0, 1)), translate.UnknownPlace},
		"labels of an unknown port":            {tor1, labels, exportOf(tor1, hop(tor1, 1, 2), hop(tor0, 3, 5)), translate.UnknownPlace},
		"labels of a host":                     {host1, labels, exportOf(host1, hop(tor0, 1, 2)), translate.ForeignList},
		"epoch":                                {tor0, epochs, answerOf(tor0), translate.Admitted},
		"epoch of another":                     {tor0, epochs, answerOf(tor1), translate.ForeignSwitch},
		"epoch of a host":                      {host0, epochs, answerOf(host0), translate.ForeignList},
		"diagnosis request":                    {host0, requests, requestOf(host0), translate.Admitted},
		"diagnosis request of another host":    {host0, requests, requestOf(host1), translate.ForeignSwitch},
		"diagnosis request of a switch":        {tor0, requests, requestOf(tor0), translate.ForeignList},
		"diagnosis request without a host":     {host1, requests, poll.Poll{Layout: poll.Prototype}.AppendTo(nil), translate.ForeignSwitch},
		"list that the translator answers for": {tor0, unplanned, []byte("anything"), translate.Admitted},
		"unknown reporter":                     {99, mirrors, mirrorOf(99, 0, 0), translate.UnknownReporter},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, nil)
			rep := dta.Report{Primitive: dta.Append, List: tc.list, Data: tc.data}
			if got := p.Report(now, &dta.Header{Reporter: tc.reporter}, &rep); got != tc.want {
				t.Errorf("Report(of node %d, list %d, %x) = %v; want %v", tc.reporter, tc.list, tc.data, got, tc.want)
			}
		})
	}
}

// TestFlooderSpendsItsOwnShare: a source above its rate is refused, others are not,
// and the source is admitted again when it slows down.
func TestFlooderSpendsItsOwnShare(t *testing.T) {
	g := newGuard(t, GuardConfig{Rate: 1000})
	flooder, honest := anywhere.Addr(), ofTor1.Addr()
	for range 10 {
		if g.rate.bucket(flooder) == g.rate.bucket(honest) { // 1 in 16384
			honest = honest.Next()
		}
	}
	admitted, refusedHonest := 0, 0
	const seconds = 20
	at := now
	for range seconds * 100 { // 10 ms each
		for range 100 { // ten times its rate
			if g.Datagram(at, flooder) == translate.Admitted {
				admitted++
			}
		}
		for range 9 {
			if g.Datagram(at, honest) != translate.Admitted {
				refusedHonest++
			}
		}
		at = at.Add(10 * time.Millisecond)
	}
	if most := 1000 * (seconds + 2); admitted < 1000*seconds || admitted > most+1 || refusedHonest != 0 {
		t.Errorf("%d datagrams of the flooder admitted in %d s, %d honest ones refused; want 1000/s and a burst of 2 s, and none", admitted, seconds, refusedHonest)
	}
	if got := g.Datagram(at.Add(time.Second), flooder); got != translate.Admitted {
		t.Errorf("a second later: %v; want it admitted", got)
	}
	if got := g.Datagram(at.Add(-time.Hour), flooder); got != translate.Admitted {
		t.Errorf("after the clock was set back: %v; want it admitted", got)
	}
}

// TestRefusedSourcesAreBounded: invented sources displace each other, not who floods.
func TestRefusedSourcesAreBounded(t *testing.T) {
	g := newGuard(t, GuardConfig{})
	flooder, invented := anywhere.Addr(), netip.MustParseAddr("10.0.0.0")
	for range 10_000 {
		g.Refused(flooder, translate.UnknownReporter, 2)
		for range 3 {
			invented = invented.Next()
			g.Refused(invented, translate.WrongMAC, 0)
		}
	}
	list := g.Sources()
	if len(list) != MaxSources || len(g.sources.byAddr) != MaxSources {
		t.Fatalf("%d sources, %d in the index; want %d", len(list), len(g.sources.byAddr), MaxSources)
	}
	if s := list[0]; s.Addr != flooder || s.Total() != 10_000 || s.Reports != 20_000 || s.Datagrams[translate.UnknownReporter] != 10_000 {
		t.Errorf("first of the list: %+v; want all 10000 refusals of %v", s, flooder)
	}
	c := g.Counts()
	if c.Datagrams[translate.UnknownReporter] != 10_000 || c.Reports[translate.UnknownReporter] != 20_000 || c.Datagrams[translate.WrongMAC] != 30_000 || c.Empty != 30_000 {
		t.Errorf("counts %+v; want 10000 datagrams of 2 reports, and 30000 without", c)
	}
	seen := map[netip.Addr]bool{}
	for _, s := range list {
		seen[s.Addr] = true
	}
	for range MaxSources - 1 {
		if !seen[invented] {
			t.Fatalf("%v was refused recently and is forgotten", invented)
		}
		invented = invented.Prev()
	}
}

// TestLogIsLimited: a flood makes one line per reason and interval, with the number
// of refusals.
func TestLogIsLimited(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1_800_000_000, 0)
	g := newGuard(t, GuardConfig{Input: "dta", Log: slog.New(slog.NewJSONHandler(&out, nil)), Now: func() time.Time { return clock }})
	for range 1000 {
		g.Refused(anywhere.Addr(), translate.WrongMAC, 1)
	}
	g.Refused(anywhere.Addr(), translate.UnknownReporter, 1)
	clock = clock.Add(logInterval)
	g.Refused(anywhere.Addr(), translate.WrongMAC, 1)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `"reason":"wrong MAC","source":"192.0.2.1","refusals":1000`) {
		t.Errorf("log:\n%s\nwant three lines, the last of 1000 refusals", out.String())
	}
}

// TestKeysAreReplacedAtOnce: a generation has one set of keys.
func TestKeysAreReplacedAtOnce(t *testing.T) {
	p := newPolicy(t, nil)
	before := p.Generation()
	if keys := p.Keys(tor0); keys != nil {
		t.Errorf("keys %v before there are any", keys)
	}
	p.SetKeys([][]translate.GateKey{tor0: {{ID: 7}}})
	if keys := p.Keys(tor0); len(keys) != 1 || keys[0].ID != 7 || p.Generation() == before {
		t.Errorf("keys %v of generation %d; want key 7 of another than %d", keys, p.Generation(), before)
	}
	if keys := p.Keys(tor1); keys != nil {
		t.Errorf("keys %v of a node without", keys)
	}
	if keys := p.Keys(1<<32 - 1); keys != nil {
		t.Errorf("keys %v of an unknown node", keys)
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	p := newPolicy(t, func(c *Config) { c.Guard = newGuard(t, GuardConfig{Rate: 1e9}) })
	head := dta.Header{Reporter: tor1}
	reports := []dta.Report{
		{Primitive: dta.Append, List: 3, Data: chunkOf(tor1, 0)},
		{Primitive: dta.Append, List: mirrors, Data: mirrorOf(tor1, 1, 2)},
		{Primitive: dta.Append, List: epochs, Data: answerOf(tor1)},
		{Primitive: dta.Append, List: labels, Data: exportOf(tor1, label.Item{Switch: tor0, Ingress: 1, Egress: 2})},
	}
	request := dta.Report{Primitive: dta.Append, List: requests, Data: requestOf(host0)}
	p.Refused(anywhere, translate.WrongMAC, 1)
	if n := testing.AllocsPerRun(100, func() {
		ok := p.Datagram(now, ofTor1, &head, 1400) == translate.Admitted
		for i := range reports {
			ok = ok && p.Report(now, &head, &reports[i]) == translate.Admitted
		}
		if !ok || p.Report(now, &dta.Header{Reporter: host0}, &request) != translate.Admitted {
			t.Error("refused")
		}
		p.Refused(anywhere, translate.WrongMAC, 1)
	}); n != 0 {
		t.Errorf("a datagram allocates %v times", n)
	}
}

// FuzzReport: no payload panics, and none is admitted that names another switch.
func FuzzReport(f *testing.F) {
	f.Add(uint32(tor0), uint32(2), chunkOf(tor0, 0))
	f.Add(uint32(tor0), uint32(mirrors), mirrorOf(5000, 1, 2))
	f.Add(uint32(tor1), uint32(labels), exportOf(tor1, label.Item{Switch: tor0, Ingress: 1, Egress: 2}))
	f.Add(uint32(tor0), uint32(epochs), answerOf(tor1))
	f.Add(uint32(host0), uint32(requests), requestOf(host0))
	f.Fuzz(func(t *testing.T, reporter, list uint32, data []byte) {
		p := newPolicy(t, nil)
		head := dta.Header{Reporter: model.NodeID(reporter)}
		rep := dta.Report{Primitive: dta.Append, List: dta.ListID(list), Data: data}
		if p.Datagram(now, ofTor1, &head, len(data)) != translate.Admitted || p.Report(now, &head, &rep) != translate.Admitted {
			return
		}
		kind, _ := listOf(rep.List)
		named, err := head.Reporter, error(nil)
		switch kind {
		case Flowset:
			var c flowset.Chunk
			if _, err = c.Parse(data); err == nil {
				named = c.Switch
			}
		case Mirror:
			var m mirror.Mirror
			if _, err = m.Parse(data); err == nil {
				named = m.Switch
			}
		case Epoch:
			var c epoch.Chunk
			if _, err = c.Parse(data); err == nil {
				named = c.Switch
			}
		case Label:
			var e label.Export
			if _, err = e.Parse(data); err == nil {
				named = e.Switch
			}
		case DiagnosisRequest:
			var q poll.Poll
			if _, err = q.Parse(data); err == nil {
				named = q.Event.Host
			}
		}
		if named != head.Reporter {
			t.Errorf("node %d reports to list %d of node %d", head.Reporter, list, named)
		}
	})
}
