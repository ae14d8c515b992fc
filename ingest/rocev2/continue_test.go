package rocev2

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// endSetup closes the connection of a translator's setup, as a network that fails does.
func (s *Server) endSetup(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[name]; p != nil {
		_ = p.conn.Close()
	}
}

// TestContinuedConnectionLosesNothing ends a connection again and again, with writes in
// flight, and gives it up as after the last retry: memory is what a local writer would have
// written, additions and entries included, which must not be executed twice.
func TestContinuedConnectionLosesNothing(t *testing.T) {
	far, near := memory(t), memory(t)
	s, _ := serve(t, "127.0.0.1:0", far, nil)
	c := dial(t, s, "tor1")
	stop := run(t, c.Run)
	out, err := translate.NewLocalWriter(near, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	local, err := translate.New(translate.DefaultConfig(), near.Plan(), out)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		batch := reports(round*10, round*10+10)
		if round%2 == 0 {
			s.endSetup("tor1")
		} else {
			c.mu.Lock()
			c.req.Pause()
			c.mu.Unlock()
		}
		put(c, batch)
		local.Put(0, batch)
		await(t, "a connection that continues", func() bool {
			_, st := c.Stats()
			return st.Requester.Resumed > uint64(round)
		})
	}
	c.Drain(model.Time(1))
	local.Drain(1)
	await(t, "all to be acknowledged", func() bool {
		_, st := c.Stats()
		return st.Requester.Acked == st.Requester.Writes+st.Requester.Adds
	})
	if _, st := c.Stats(); st.Requester.Lost != 0 || st.Remote.Dropped != 0 {
		t.Errorf("%+v; want nothing lost", st)
	}
	stop()
	for i, r := range far.Regions() {
		o := near.Regions()[i]
		x, y := make([]byte, r.Size()), make([]byte, o.Size())
		if r.Read(0, x) != nil || o.Read(0, y) != nil || !bytes.Equal(x, y) {
			t.Errorf("memory %d of kind %s differs from what a local writer writes", i, r.Header().Kind)
		}
	}
}

// TestContinueWithoutReply: a translator that never got the reply continues the connection
// before it, and one of another queue pair begins afresh.
func TestContinueWithoutReply(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0", memory(t), nil)
	admit := func(continues roce.QPN) (Reply, error) {
		conn, _ := net.Pipe()
		t.Cleanup(func() { conn.Close() })
		from := netip.MustParseAddrPort("127.0.0.1:9")
		req := Request{Addr: from, QPN: 7, PSN: 100, Continues: continues}
		return s.admitTranslator(caller{name: "tor1", req: req}, &session{conn: conn, from: from.Addr()})
	}
	first, err := admit(0)
	if err != nil || first.Continued {
		t.Fatalf("%+v, %v; want a connection that begins afresh", first, err)
	}
	second, err := admit(first.QPN)
	if err != nil || !second.Continued {
		t.Fatalf("%+v, %v; want it to continue the first", second, err)
	}
	third, err := admit(first.QPN) // the second reply was lost
	if err != nil || !third.Continued {
		t.Fatalf("%+v, %v; want it to continue the first again", third, err)
	}
	if other, err := admit(second.QPN); err != nil || other.Continued {
		t.Fatalf("%+v, %v; want a connection that begins afresh: nobody was told that number", other, err)
	}
}
