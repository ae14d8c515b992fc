package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

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

// iperfEqual reports false where an agent had to miss packets, or iperf3 lost some or gave up.
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
	awaitCounting(t, l)
	sent, lost, err := iperf(t, l.Addr(to).String())
	if err != nil {
		t.Log(err)
		cancel()
		<-done
		return false
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, id := range l.Fabric().Switches() {
		if missed := l.Agent(id).Stats().Exported.Missed; missed > 0 || lost > 0 {
			t.Logf("%d packets missed, %d lost", missed, lost)
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
		if packets != sent+1 {
			t.Errorf("%s counted %d packets; want the %d of iperf3 and that of its handshake", l.Fabric().Node(sw).Name, packets, sent)
		}
	}
	if len(seen) != 3 { // two leaves and a spine
		t.Errorf("%d switches counted them; want the three of a path", len(seen))
	}
	return true
}

// iperf sends datagrams from h0 to h7, and returns how many iperf3 says were sent and lost. A server serves one
// client that may fail, where the machine has no time for it: its handshake is a datagram that is not sent again.
func iperf(t *testing.T, to string) (sent, lost uint64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := func(host string, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "nsenter", append([]string{"--net=/run/netns/weft-" + host, "iperf3"}, args...)...)
	}
	server := program("h7", "-s", "--forceflush")
	said, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = server.Wait() // it was killed
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Server listening") {
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	out, err := program("h0", "-J", "-c", to, "-u", "-b", "4M", "-l", "1000", "-n", "500K").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("iperf3: %w\n%s", err, out)
	}
	var result struct {
		End struct {
			Sum struct {
				Packets     uint64 `json:"packets"`
				LostPackets uint64 `json:"lost_packets"`
			} `json:"sum"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &result); err != nil || result.End.Sum.Packets < 100 {
		t.Fatalf("iperf3 says %v, %s; want a few hundred packets", err, out)
	}
	return result.End.Sum.Packets, result.End.Sum.LostPackets, nil
}
