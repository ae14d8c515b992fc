package rocev2

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/cm"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// loopback returns an address for the port that RoCEv2 fixes: many tests may run
// on one machine.
func loopback() netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250)), byte(rand.IntN(256)), byte(1 + rand.IntN(250))})
}

// serveCM serves a memory to peers that connect by RDMA_CM.
func serveCM(t *testing.T, cfg ServerConfig, m *translate.Memory) *Server {
	t.Helper()
	cfg.RoCE, cfg.Control = listening(loopback()), netip.MustParseAddrPort("127.0.0.1:0")
	s, err := NewServer(cfg, m, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.Run)
	return s
}

// dialCM connects to memory i of a Server.
func dialCM(t *testing.T, s *Server, i uint16, plan *translate.Plan, regions []rdma.Region) (*Client, error) {
	t.Helper()
	cfg := ClientConfig{
		Name: "tor1", Collector: netip.AddrPortFrom(s.Addr().Addr(), s.cmPort()+i).String(), Local: netip.AddrPortFrom(loopback(), 0),
		Translate: translate.DefaultConfig(), Requester: rdma.DefaultRequesterConfig(), ExchangeTime: time.Minute,
		CM: &CMClientConfig{Plan: plan, Regions: regions},
	}
	cfg.Requester.Timeout, cfg.Requester.Retries = 250*time.Millisecond, 1000
	return Dial(t.Context(), cfg, quiet)
}

// TestConnectByCM writes values into a collector whose region comes by a SEND, and
// again where it is configured, and compares with memory that was written directly.
func TestConnectByCM(t *testing.T) {
	m := memory(t)
	s := serveCM(t, ServerConfig{}, m)
	plan := &translate.Plan{KeyWrites: m.Plan().KeyWrites}
	want, err := keywrite.Open("", keywrite.DefaultConfig(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Region().Close()
	local, err := translate.NewLocalWriter(&translate.Memory{KeyWrites: []*keywrite.Table{want}}, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := s.adverts[0]
	for i, regions := range [][]rdma.Region{nil, {{Addr: at.Addr, Length: at.Length, RKey: at.RKey}}} {
		c, err := dialCM(t, s, 0, plan, regions)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, c.Run)
		var batch []dta.Report
		for n := range 200 {
			batch = append(batch, dta.Report{Primitive: dta.KeyWrite, Redundancy: 2, Key: word(1000*i + n), Data: word(n)})
		}
		for _, r := range batch {
			if v := c.Admit(&r); v != dta.Stored {
				t.Fatalf("Admit = %v", v)
			}
			local.KeyWrite(&r)
		}
		c.Put(model.TimeOf(time.Now()), batch)
		await(t, "acknowledgements", func() bool { _, st := c.Stats(); return st.Requester.Acked == 400 })
		stop()
		await(t, "the end of the connection", func() bool { return s.Stats().Peers == 0 })
	}
	var got, direct bytes.Buffer
	dump(t, &got, m.KeyWrites[0])
	dump(t, &direct, want)
	if !bytes.Equal(got.Bytes(), direct.Bytes()) {
		t.Error("memory differs from memory that was written directly")
	}
	if st := s.Stats().CM; st.Admitted != 2 || st.Disconnected != 2 || st.Malformed != 0 {
		t.Errorf("%+v; want 2 admitted and disconnected", st)
	}
}

func dump(t *testing.T, to *bytes.Buffer, k *keywrite.Table) {
	t.Helper()
	r := k.Region()
	b := make([]byte, r.Size())
	if err := r.Read(0, b); err != nil {
		t.Fatal(err)
	}
	to.Write(b)
}

func TestCMRejects(t *testing.T) {
	m := memory(t)
	plan := &translate.Plan{KeyWrites: m.Plan().KeyWrites}
	s := serveCM(t, ServerConfig{}, m)
	if _, err := dialCM(t, s, 4, plan, nil); err == nil || !strings.Contains(err.Error(), "invalid service id") {
		t.Errorf("port of no memory: %v; want invalid service id", err)
	}
	big := keywrite.DefaultConfig(4 << 20)
	scheme, err := keywrite.NewScheme(big)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialCM(t, s, 0, &translate.Plan{KeyWrites: []*keywrite.Scheme{scheme}}, nil); err == nil || !strings.Contains(err.Error(), "geometry") {
		t.Errorf("larger geometry than the region: %v; want an error about the geometry", err)
	}
	await(t, "the end of the connection", func() bool { return s.Stats().Peers == 0 })
	keyed := serveCM(t, ServerConfig{Keys: keyfile.Generate([]string{"tor1"}, nil)}, memory(t))
	if _, err := dialCM(t, keyed, 0, plan, nil); err == nil || !strings.Contains(err.Error(), "rejected by the program") {
		t.Errorf("collector with keys: %v; want a rejection", err)
	}
	if st := keyed.Stats(); st.Setup.Refused[NoKey] == 0 || st.Peers != 0 {
		t.Errorf("%+v; want a refusal without key", st.Setup)
	}
	elsewhere := serveCM(t, ServerConfig{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, memory(t))
	if _, err := dialCM(t, elsewhere, 0, plan, nil); err == nil {
		t.Error("an address that is not allowed is connected")
	}
	if st := elsewhere.Stats(); st.Setup.Refused[AddressNotAllowed] == 0 {
		t.Errorf("%+v; want a refusal of the address", st.Setup)
	}
}

// TestCMLosses plays a peer whose messages are lost: the reply is sent again, a
// repeated request gets the same queue pair, a repeated end the same answer.
func TestCMLosses(t *testing.T) {
	s := serveCM(t, ServerConfig{}, memory(t))
	me := listening(loopback())
	cfg := udp.DefaultConfig(me)
	cfg.Offload, cfg.DontFragment = false, true
	conn, err := udp.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(body cm.Body) {
		if _, err := conn.Send(s.Addr(), appendCM(nil, rdma.Path{Src: me, Dst: s.Addr()}, 1, cm.Message{Transaction: 9, Body: body})); err != nil {
			t.Fatal(err)
		}
	}
	var got []cm.Message
	var message []byte
	next := func(is func() bool) {
		got, message = nil, nil
		await(t, "a message", func() bool {
			if _, err := conn.Receive(func(from netip.AddrPort, p []byte) {
				if isCM(p) {
					m, err := parseCM(rdma.Path{Src: from, Dst: me}, p)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, m)
				} else {
					message = bytes.Clone(p)
				}
			}); err != nil {
				t.Fatal(err)
			}
			return is()
		})
	}
	request := &cm.REQ{
		LocalCommID: 7, ServiceID: cm.ServiceID(s.cmPort()), LocalQPN: 99, StartingPSN: 5, MTU: 1024, PKey: roce.DefaultPKey,
		Initiator: 200, Local: me.Addr(), Remote: s.Addr().Addr(), Source: me.Addr(), Target: s.Addr().Addr(),
	}
	send(request)
	next(func() bool { return len(got) >= 2 }) // the reply, sent again without an answer
	send(request)
	first := got[0].Body.(*cm.REP)
	next(func() bool { return len(got) >= 1 })
	if again := got[0].Body.(*cm.REP); *again != *first || first.Remote != 7 || first.Responder != rdma.MaxAtomics {
		t.Errorf("replies %+v and %+v; want the same", first, again)
	}
	send(&cm.RTU{CommIDs: cm.CommIDs{Local: 7, Remote: first.Local}})
	next(func() bool { return message != nil })
	var p roce.Packet
	if _, err := p.Parse(message[:len(message)-roce.ICRCSize]); err != nil || p.BTH.Opcode != roce.SendOnly || p.BTH.DestQP != 99 || p.BTH.PSN != request.StartingPSN {
		t.Fatalf("%+v, %v; want a SEND to queue pair 99", p, err)
	}
	region, err := parseRegion(p.Data())
	if at := s.adverts[0]; err != nil || region != (rdma.Region{Addr: at.Addr, Length: at.Length, RKey: at.RKey}) {
		t.Errorf("region %+v, %v; want that of %+v", region, err, at)
	}
	for range 2 {
		send(&cm.DREQ{CommIDs: cm.CommIDs{Local: 7, Remote: first.Local}, RemoteQPN: first.LocalQPN})
		next(func() bool {
			for _, m := range got {
				if d, ok := m.Body.(*cm.DREP); ok && d.Remote == 7 {
					return true
				}
			}
			return false
		})
	}
	if st := s.Stats(); st.Peers != 0 || st.CM.Disconnected != 1 || st.CM.Admitted != 1 {
		t.Errorf("%+v; want one disconnected", st.CM)
	}
}
