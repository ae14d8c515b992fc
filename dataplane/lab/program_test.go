package lab_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestFlowsetsEqualIperf has iperf3 send between two hosts: each switch of the path counts the datagrams that it
// says it has sent, and those of its handshake.
func TestFlowsetsEqualIperf(t *testing.T) {
	needsRoot(t)
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Fatalf("%v (install it: scripts/need iperf3:iperf3)", err)
	}
	for try := 1; !iperfEqual(t, routes(t)); try++ {
		if try == 5 {
			t.Fatal("in five runs agents or sockets missed packets")
		}
	}
}

// iperfEqual reports false where an agent had to miss packets, or iperf3 lost some.
func iperfEqual(t *testing.T, r *topo.Routes) bool {
	t.Helper()
	c := newCollector(t, nil)
	l, err := lab.Up(lab.Config{
		Routes: r, Agent: agentConfig(t, c.addr()), List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLab(t, l)
	from, _ := l.Fabric().ByName("h0")
	to, _ := l.Fabric().ByName("h7")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	for _, id := range l.Fabric().Switches() {
		for l.Agent(id).Stats().Exported.Slots == 0 {
			time.Sleep(time.Millisecond) // until it counts
		}
	}
	program := func(host string, args ...string) *exec.Cmd {
		return exec.Command("nsenter", append([]string{"--net=/run/netns/weft-" + host, "iperf3", "-J"}, args...)...)
	}
	server := program("h7", "-s", "-1")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var said struct {
		End struct {
			Sum struct {
				Packets     uint64 `json:"packets"`
				LostPackets uint64 `json:"lost_packets"`
			} `json:"sum"`
		} `json:"end"`
	}
	var out []byte
	for { // the server may not listen yet
		if out, err = program("h0", "-c", l.Addr(to).String(), "-u", "-b", "4M", "-l", "1000", "-n", "500K").Output(); err == nil {
			break
		}
		if ctx.Err() != nil || json.Unmarshal(out, &said) == nil && said.End.Sum.Packets > 0 {
			t.Fatalf("iperf3: %v\n%s", err, out)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &said); err != nil || said.End.Sum.Packets < 100 {
		t.Fatalf("iperf3 says %v, %s; want a few hundred packets", err, out)
	}
	for _, id := range l.Fabric().Switches() {
		if missed := l.Agent(id).Stats().Exported.Missed; missed > 0 || said.End.Sum.LostPackets > 0 {
			t.Logf("%d packets missed, %d lost", missed, said.End.Sum.LostPackets)
			return false
		}
	}
	seen := map[model.NodeID]uint64{}
	for _, fs := range c.flowsets() {
		decoded := flows.SingleDecode(fs)
		for _, rec := range decoded.Records {
			if rec.Key.Proto == model.UDP && rec.Key.Src.Netip() == l.Addr(from) && rec.Key.Dst.Netip() == l.Addr(to) {
				seen[fs.Switch] += rec.Packets
			}
		}
	}
	// The client sends one datagram more, by which the server knows its port.
	for sw, packets := range seen {
		if packets != said.End.Sum.Packets+1 {
			t.Errorf("%s counted %d packets; want the %d of iperf3 and that of its handshake", l.Fabric().Node(sw).Name, packets, said.End.Sum.Packets)
		}
	}
	if len(seen) != 3 { // two leaves and a spine
		t.Errorf("%d switches counted them; want the three of a path", len(seen))
	}
	return true
}
