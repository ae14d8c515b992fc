package discover

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRealLLDPD: a switch, another and a host in network namespaces, each with lldpd. What
// they heard of each other is the fabric, with the names of its ports.
func TestRealLLDPD(t *testing.T) {
	for _, need := range []string{"lldpd", "lldpcli"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Fatalf("%v (install it: scripts/need lldpd:lldpd)", err)
		}
	}
	dir, err := os.MkdirTemp("", "weft-lldp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // lldpcli connects as a user without rights
		t.Fatal(err)
	}
	ns := func(node string) string { return fmt.Sprintf("weft-lldp-%d-%s", os.Getpid(), node) }
	nodes := []string{"tor0", "spine0", "h0"}
	for _, node := range nodes {
		command(t, "ip", "netns", "add", ns(node))
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns(node)).Run() })
		forward := "1"
		if node == "h0" {
			forward = "0"
		}
		command(t, "ip", "netns", "exec", ns(node), "sh", "-c", "echo "+forward+" > /proc/sys/net/ipv4/ip_forward")
	}
	link := func(a, port, z, far string) {
		command(t, "ip", "link", "add", port, "netns", ns(a), "type", "veth", "peer", "name", far, "netns", ns(z))
		command(t, "ip", "-n", ns(a), "link", "set", port, "up")
		command(t, "ip", "-n", ns(z), "link", "set", far, "up")
	}
	link("tor0", "Ethernet0", "spine0", "Ethernet4")
	link("tor0", "Ethernet8", "h0", "eth0")
	cli := func(node string, words ...string) string {
		return command(t, "lldpcli", append([]string{"-u", filepath.Join(dir, node)}, words...)...)
	}
	for _, node := range nodes {
		startLLDPD(t, ns(node), filepath.Join(dir, node))
		cli(node, "configure", "system", "hostname", node)
		cli(node, "configure", "lldp", "tx-interval", "1")
		cli(node, "update")
	}
	want := []string{"h0 eth0 - tor0 Ethernet8 100 Gb/s", "spine0 Ethernet4 - tor0 Ethernet0 100 Gb/s"}
	diff := "nothing was heard"
	for deadline := time.Now().Add(time.Minute); diff != "" && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var heard []Node
		for _, node := range nodes {
			n, err := ParseLLDPD(node, []byte(cli(node, "-f", "json0", "show", "neighbors", "details")))
			if err != nil {
				t.Fatal(err)
			}
			heard = append(heard, n)
		}
		f, findings, err := Build(cfg, heard)
		if err != nil { // nothing was heard yet
			diff = err.Error()
			continue
		}
		roles := ""
		for _, n := range f.Nodes() {
			roles += n.Name + ":" + n.Role.String() + " "
		}
		got := append(describe(f), findings...)
		slices.Sort(got)
		if diff = cmp.Diff(want, got); diff == "" && roles != "h0:host spine0:switch tor0:switch " {
			diff = "roles " + roles
		}
	}
	if diff != "" {
		t.Errorf("discovered (- want, + got):\n%s", diff)
	}
}

// startLLDPD runs lldpd in a namespace until the test ends, and waits until it answers.
func startLLDPD(t *testing.T, ns, socket string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command("ip", "netns", "exec", ns, "lldpd", "-d", "-u", socket)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // so that it ends its other process, too
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", ns, log.String())
		}
	})
	for {
		if exec.Command("lldpcli", "-u", socket, "show", "chassis").Run() == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("lldpd in %s ended", ns)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// command runs a command to its end.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}
