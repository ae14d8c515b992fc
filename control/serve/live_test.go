package serve

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
)

// TestINTReportsShowPorts: a report over a real socket is a port's state in the
// API, and tokens change while serving.
func TestINTReportsShowPorts(t *testing.T) {
	b := start(t, testConfig(t))
	sw := b.Fabric().Node(b.Fabric().Hosts()[0]).Ports[0].Peer.Node
	conn, err := net.Dial("udp", b.SourceAddr("int").String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := b.client("")
	seq := uint32(0)
	eventually(t, "the queue of port 2 in the state", func() bool {
		r := intreport.Report{Type: intreport.INT}
		r.Metadata = intreport.Metadata{Bits: intreport.BitPorts | intreport.BitQueue, Ingress: 1, Egress: 2, QueueDepth: 4242}
		r.IngressTime = uint64(model.TimeOf(time.Now()))
		if _, err := conn.Write(r.AppendTo(intreport.Group{Node: uint32(sw), Seq: seq}.AppendTo(nil))); err != nil {
			t.Fatal(err)
		}
		seq++
		st, err := c.State(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range st.Ports {
			if p.Node == b.Fabric().Node(sw).Name && p.Port == 2 && p.QueueBytes == 4242 {
				return true
			}
		}
		return false
	})
	next := b.cfg
	next.API.Token, next.Store.Queue = "0123456789abcdef", 5000
	restart, err := b.Reload(context.Background(), next)
	if err != nil || len(restart) != 1 || restart[0] != "store.queue" {
		t.Errorf("Reload = %v, %v; want a restart for store.queue alone", restart, err)
	}
	if _, err := c.Clock(t.Context()); err == nil {
		t.Error("asked without the new token, and was answered")
	}
	if _, err := b.client("0123456789abcdef").Clock(t.Context()); err != nil {
		t.Errorf("asked with the new token: %v", err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}
