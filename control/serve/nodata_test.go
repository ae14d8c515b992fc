package serve

import (
	"strings"
	"testing"
)

// TestNoDataUntilTheFirstReport: a service that has received nothing says so, and where it
// receives reports; after the first report it does not.
func TestNoDataUntilTheFirstReport(t *testing.T) {
	b := start(t, testConfig(t))
	h := b.Health()
	if h.State != "no-data" || h.NoData == nil {
		t.Fatalf("health %s, %v; want no-data with what to do", h.State, h.NoData)
	}
	address := b.Reports().String()
	if !strings.Contains(h.NoData.Text, address) || len(h.NoData.SendTo) == 0 || h.NoData.SendTo[0].Address != address {
		t.Errorf("no data: %+v; want the address %s", h.NoData, address)
	}
	for _, try := range h.NoData.Try {
		if !strings.HasPrefix(try.Command, "weft demo") || try.About == "" {
			t.Errorf("try %+v; want a command of weft and what it does", try)
		}
	}
	f := b.Fabric()
	sw := f.Node(f.Hosts()[0]).Ports[0].Peer.Node
	b.reporter(sw).append(b.fabric.lists.Mirrors.First, b.passing(sw, 64))
	eventually(t, "the first report", func() bool { h := b.Health(); return h.NoData == nil && h.State == "ok" })
}
