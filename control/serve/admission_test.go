package serve

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// lost waits until a stage has lost a number for a reason.
func (b *bed) lost(stageName, reason string, want uint64) {
	b.t.Helper()
	var got uint64
	eventually(b.t, stageName+": "+reason, func() bool {
		_, lost := stage(b.Health(), stageName)
		got = lost[reason]
		return got >= want
	})
	if got != want {
		b.t.Errorf("%s lost %d for %q; want %d", stageName, got, reason, want)
	}
}

// stored waits until a number of reports is in memory.
func (b *bed) stored(want uint64) {
	b.t.Helper()
	eventually(b.t, "reports are stored", func() bool { st, _ := stage(b.Health(), "translator"); return st.Out >= want })
	if st, _ := stage(b.Health(), "translator"); st.Out != want {
		b.t.Errorf("%d reports stored; want %d", st.Out, want)
	}
}

// passing is a mirror of a packet at a switch.
func (b *bed) passing(sw model.NodeID, ttl int) []byte {
	f := b.Fabric()
	m := mirror.Mirror{
		Reasons: mirror.Debug, Switch: sw, In: 1, Out: 2, Time: model.TimeOf(time.Now()),
		Frame: frame(f, f.Hosts()[0], f.Hosts()[5], 1000, 7),
	}
	m.Frame[22] = byte(ttl)
	m.Length = uint16(len(m.Frame))
	return m.AppendTo(nil)
}

// TestStrangersChangeNothing: reports of unknown nodes, to others' lists, about other
// switches and in the prototype's format are refused where they enter, counted by
// reason and source, and make no incident.
func TestStrangersChangeNothing(t *testing.T) {
	b := start(t, testConfig(t))
	f, lists := b.Fabric(), b.fabric.lists
	switches, hosts := f.Switches(), f.Hosts()
	chunk := func(sw model.NodeID) []byte {
		h := flowset.Header{Switch: sw, Length: 10 * time.Millisecond}
		return flowset.Seal(h.Open(nil, flowset.Span{Count: 1}), 0)
	}
	unknown := b.reporter(5000)
	for range 8 {
		unknown.append(lists.Flowsets.First, chunk(5000))
	}
	lying := b.reporter(switches[0])
	lying.append(lists.FlowsetList(switches[0]), chunk(5000))
	lying.append(lists.FlowsetList(switches[1]), chunk(switches[1]))
	lying.append(lists.Mirrors.First, b.passing(switches[1], 60))
	// A host reports that one packet visits two switches again and again.
	host := b.reporter(hosts[0])
	for i := range 8 {
		host.append(lists.Mirrors.First, b.passing(switches[i%2], 60-i))
	}
	prototype := dta.Prototype{Layout: dta.Base3, Report: dta.Report{Primitive: dta.Append, List: lists.Mirrors.First, Data: make([]byte, 4)}}
	if _, err := lying.conn.Write(prototype.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	b.lost("translator", "unknown reporter", 8)
	b.lost("translator", "another switch in the payload", 2)
	b.lost("translator", "not this reporter's list", 9)
	b.lost("translator", "prototype format not allowed", 1)
	h, err := b.api.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st, lost := stage(h, "translator")
	sum := uint64(0)
	for reason, n := range lost {
		if reason != "malformed" && reason != "refused without reports" { // in datagrams
			sum += n
		}
	}
	if st.Out != 0 || st.In != sum {
		t.Errorf("translator: %d in, %d out, %d lost; want all lost", st.In, st.Out, sum)
	}
	if len(h.Refused) != 1 || h.Refused[0].Input != "dta" || h.Refused[0].Address != "127.0.0.1" || h.Refused[0].Reasons["unknown reporter"] != 8 {
		t.Errorf("refused sources %+v; want this host", h.Refused)
	}
	if list := b.incidents(); len(list) > 0 {
		t.Errorf("incidents of refused reports: %+v", list)
	}
}

// TestAddressesOfSwitches: where the configuration knows the address of a switch, its
// reports come from there or not at all.
func TestAddressesOfSwitches(t *testing.T) {
	cfg := testConfig(t)
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	here, elsewhere, any := f.source.Switches[0], f.source.Switches[1], f.source.Switches[2]
	host := f.doc.Fabric.Node(f.doc.Fabric.Hosts()[0])
	cfg.Switches = []Switch{
		{Name: here.Name, Values: map[string]string{"address": "192.0.2.1,127.0.0.0/8"}},
		{Name: elsewhere.Name, Values: map[string]string{"address": "192.0.2.2"}},
		{Name: host.Name, Values: map[string]string{"address": "192.0.2.3"}},
	}
	b := start(t, cfg)
	for _, id := range []model.NodeID{here.ID, elsewhere.ID, any.ID, host.ID} {
		b.reporter(id).append(b.fabric.lists.Mirrors.First, b.passing(id, 60))
	}
	b.stored(2)
	b.lost("translator", "address not allowed", 2)

	// Of INT reports it is the same.
	conn, err := net.Dial("udp", b.SourceAddr("int").String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	report := intreport.Report{Type: intreport.INT, Flags: intreport.Congested}
	report.Metadata = intreport.Metadata{Bits: intreport.BitPorts | intreport.BitQueue, Ingress: 1, Egress: 2}
	for _, id := range []model.NodeID{here.ID, elsewhere.ID, any.ID} {
		if _, err := conn.Write(report.AppendTo(intreport.Group{Node: uint32(id)}.AppendTo(nil))); err != nil {
			t.Fatal(err)
		}
	}
	b.lost("int", "address not allowed", 1)
	eventually(t, "INT reports are used", func() bool { st, _ := stage(b.Health(), "int"); return st.Out == 2 })
}

// TestAllowedPrefixes: and what may report at all.
func TestAllowedPrefixes(t *testing.T) {
	cfg := testConfig(t)
	set(t, &cfg, "dta.allow", "192.0.2.0/24, 2001:db8::/32")
	set(t, &cfg, "int.allow", "192.0.2.0/24")
	b := start(t, cfg)
	b.reporter(b.Fabric().Switches()[0]).append(b.fabric.lists.Mirrors.First, b.passing(b.Fabric().Switches()[0], 60))
	b.lost("translator", "address not allowed", 1)
	conn, err := net.Dial("udp", b.SourceAddr("int").String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("report")); err != nil {
		t.Fatal(err)
	}
	b.lost("int", "address not allowed", 1)
}

// signed sends a report of a switch with a key.
func (b *bed) signed(sw model.NodeID, k keyfile.Key) {
	b.t.Helper()
	conn, err := net.Dial("udp", b.Reports().String())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	w := dta.NewWriter(sw, 1)
	w.Begin(make([]byte, MaxReport))
	if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: b.fabric.lists.Mirrors.First, Data: b.passing(sw, 60)}); err != nil {
		b.t.Fatal(err)
	}
	now := model.TimeOf(time.Now())
	datagram, err := dta.NewMAC(k.ID, k.Secret[:]).AppendSigned(nil, w.Finish(), now, now)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := conn.Write(datagram); err != nil {
		b.t.Fatal(err)
	}
}

// syncBuffer is a log that a test reads while a service writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestKeysAreReread: a reporter with a key must use it; a reload adds and removes
// keys, and one with an unreadable file changes nothing.
func TestKeysAreReread(t *testing.T) {
	cfg := testConfig(t)
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	first, second := f.source.Switches[0], f.source.Switches[1]
	path := filepath.Join(t.TempDir(), "keys")
	keys := keyfile.Generate([]string{first.Name}, nil)
	if err := keys.Write(path); err != nil {
		t.Fatal(err)
	}
	set(t, &cfg, "dta.keys", path)
	b := start(t, cfg)
	list := b.fabric.lists.Mirrors.First
	b.reporter(first.ID).append(list, b.passing(first.ID, 60))
	b.lost("translator", "no MAC", 1)
	b.reporter(second.ID).append(list, b.passing(second.ID, 60)) // has none yet
	b.stored(1)
	old := keys.Keys(first.Name)[0]
	b.signed(first.ID, old)
	b.stored(2)
	wrong := old
	wrong.Secret[0]++
	b.signed(first.ID, wrong)
	b.lost("translator", "wrong MAC", 1)

	if err := keys.Rotate(nil); err != nil {
		t.Fatal(err)
	}
	if err := keys.Replace(path); err != nil {
		t.Fatal(err)
	}
	young := keys.Keys(first.Name)[0]
	b.signed(first.ID, young)
	b.lost("translator", "unknown key", 1)
	if restart, err := b.Reload(t.Context(), b.cfg); err != nil || len(restart) > 0 {
		t.Fatalf("Reload = %v, %v; want the new keys", restart, err)
	}
	b.signed(first.ID, young)
	b.stored(3)
	b.signed(first.ID, old)
	b.stored(4)
	if _, err := keys.Retire(); err != nil {
		t.Fatal(err)
	}
	if err := keys.Replace(path); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reload(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	b.signed(first.ID, old)
	b.lost("translator", "unknown key", 2)

	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reload(t.Context(), b.cfg); err == nil || !strings.Contains(err.Error(), "dta.keys: "+path) {
		t.Errorf("Reload of a file for everybody = %v; want an error with its name", err)
	}
	b.signed(first.ID, young)
	b.stored(5)
}

// TestRequiredMAC: forged reports change nothing but counters, and the log names who
// has no key.
func TestRequiredMAC(t *testing.T) {
	cfg := testConfig(t)
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	with, without := f.source.Switches[0], f.source.Switches[1]
	var names []string
	for _, s := range f.source.Switches {
		if s.ID != without.ID {
			names = append(names, s.Name)
		}
	}
	path := filepath.Join(t.TempDir(), "keys")
	keys := keyfile.Generate(append(names, "translator-of-pod-1"), nil)
	if err := keys.Write(path); err != nil {
		t.Fatal(err)
	}
	set(t, &cfg, "dta.require", "mac")
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "without dta.keys") {
		t.Errorf("Check = %v; want keys demanded", err)
	}
	set(t, &cfg, "dta.keys", path)
	var log syncBuffer
	b := startWith(t, cfg, Deps{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if text := log.String(); !strings.Contains(text, "switches without a key") || !strings.Contains(text, "switches=["+without.Name+"]") ||
		!strings.Contains(text, "translator-of-pod-1") {
		t.Errorf("log:\n%s\nwant the names of %s, and of the key of nobody", text, without.Name)
	}
	for _, s := range f.source.Switches {
		b.reporter(s.ID).append(b.fabric.lists.Mirrors.First, b.passing(s.ID, 60))
	}
	b.lost("translator", "no MAC", uint64(len(f.source.Switches)))
	b.signed(without.ID, keys.Keys(with.Name)[0])
	b.lost("translator", "unknown key", 1)
	b.signed(with.ID, keys.Keys(with.Name)[0])
	b.stored(1)
	next := b.cfg.clone()
	set(t, &next, "dta.keys", "")
	set(t, &next, "dta.require", "")
	if _, err := b.Reload(t.Context(), next); err == nil || !strings.Contains(err.Error(), "until a restart") {
		t.Errorf("Reload without keys = %v; want it refused", err)
	}
}

// TestHostsHaveAddressesAlone: of a host nothing else is known.
func TestHostsHaveAddressesAlone(t *testing.T) {
	cfg := testConfig(t)
	for _, tc := range []struct {
		name   string
		values map[string]string
		want   string
	}{
		{"h0", map[string]string{"address": "10.0.0.1"}, ""},
		{"h0", map[string]string{"address": "10.0.0.1", "int": "7"}, "want its address alone"},
		{"h0", map[string]string{}, "want its address alone"},
		{"h999", map[string]string{"address": "10.0.0.1"}, "is not a switch or host"},
	} {
		cfg.Switches = []Switch{{Name: tc.name, Values: tc.values}}
		_, err := readFabric(&cfg)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s with %v: %v; want %q", tc.name, tc.values, err, tc.want)
		}
	}
}

// TestPortsOfSwitches: by name and number; the CPU is none.
func TestPortsOfSwitches(t *testing.T) {
	cfg := testConfig(t)
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := f.source.Switches[0]
	name := f.doc.Fabric.Node(s.ID).Ports[1].Name
	for text, want := range map[string]model.PortID{name: 2, "3": 3, "cpu": 0, "0": 0, "99": 0, "": 0, name + " ": 0, "nowhere": 0} {
		if got, ok := s.Port(text); got != want || ok != (want != 0) {
			t.Errorf("Port(%q) of %s = %d, %v; want %d", text, s.Name, got, ok, want)
		}
	}
}

// TestPortInUseIsSaidOnce: a service whose port is taken says so, and nothing else.
func TestPortInUseIsSaidOnce(t *testing.T) {
	for _, key := range []string{"dta.listen", "int.listen"} {
		taken, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		cfg := testConfig(t)
		set(t, &cfg, key, taken.LocalAddr().String())
		s, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		st, err := inproc.New(inproc.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(t.Context(), cfg, Deps{Store: s, Stream: st, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Fatalf("%s: a service on a taken port", key)
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "address already in use") ||
			strings.Count(text, "in use") != 1 || strings.Contains(text, "invalid argument") {
			t.Errorf("%s: %q; want the reason, once", key, text)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
