package serve

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netns"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// frrLab is a fabric of network namespaces, in which each switch runs FRR's zebra and bgpd.
type frrLab struct {
	t      *testing.T
	fabric *topo.Fabric
	dir    string
}

// frrDaemons is where Debian has them.
const frrDaemons = "/usr/lib/frr"

// startFRR builds the fabric. Switches are connected by addresses of their own for each link, as
// most fabrics are, and send BMP to connect, which is given the sender's loopback address of
// this host.
func startFRR(t *testing.T, f *topo.Fabric, bmp string) *frrLab {
	t.Helper()
	dir, err := os.MkdirTemp("", "frr") // a path of a socket has at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	l := &frrLab{t: t, fabric: f, dir: dir}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, id := range f.Switches() {
		ns := l.namespace(id)
		l.run("ip", "netns", "add", ns)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
		l.run("ip", "-n", ns, "link", "set", "lo", "up")
		l.run("ip", "-n", ns, "addr", "add", f.Node(id).IPv4.String()+"/32", "dev", "lo")
		l.relay(id, bmp)
	}
	peers := map[model.NodeID]string{} // the lines of each switch's configuration
	for i, link := range f.Links() {
		a, b := f.Port(link.A), f.Port(link.B)
		if !f.Node(link.A.Node).Role.IsSwitch() || !f.Node(link.B.Node).Role.IsSwitch() {
			continue
		}
		l.run("ip", "link", "add", a.Name, "netns", l.namespace(link.A.Node), "type", "veth", "peer", "name", b.Name, "netns", l.namespace(link.B.Node))
		for end, p := range []model.Port{link.A, link.B} {
			ns, far := l.namespace(p.Node), [...]model.Port{link.B, link.A}[end].Node
			l.run("ip", "-n", ns, "addr", "add", fmt.Sprintf("192.0.2.%d/31", 2*i+end), "dev", f.Port(p).Name)
			l.run("ip", "-n", ns, "link", "set", f.Port(p).Name, "up")
			peers[p.Node] += fmt.Sprintf(" neighbor 192.0.2.%d remote-as %d\n", 2*i+1-end, 65000+far)
		}
	}
	for _, id := range f.Switches() {
		l.startDaemon(id, "zebra", "hostname "+f.Node(id).Name+"\n")
		l.startDaemon(id, "bgpd", fmt.Sprintf(`hostname %s
router bgp %d
 bgp router-id %s
 no bgp ebgp-requires-policy
 no bgp network import-check
 bgp bestpath as-path multipath-relax
 timers bgp 1 3
%s bmp targets weft
  bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 200
  bmp monitor ipv4 unicast post-policy
 exit
`, f.Node(id).Name, 65000+id, f.Node(id).IPv4, peers[id]), "-M", "bmp")
		for _, h := range f.Hosts() {
			if f.Node(h).Ports[0].Peer.Node == id {
				l.network(h, true)
			}
		}
	}
	return l
}

// namespace is not that of weft lab, which removes what other labs have left.
func (l *frrLab) namespace(id model.NodeID) string {
	return fmt.Sprintf("frr-%d-%s", os.Getpid(), l.fabric.Node(id).Name)
}

// run runs a command, and returns its output.
func (l *frrLab) run(words ...string) string {
	l.t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v: %s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// startDaemon runs a daemon of a switch until the test ends, and waits until it answers.
func (l *frrLab) startDaemon(id model.NodeID, name, config string, options ...string) {
	l.t.Helper()
	dir := filepath.Join(l.dir, l.fabric.Node(id).Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	file := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		l.t.Fatal(err)
	}
	l.run("chown", "-R", "frr:frr", dir) // daemons give up their rights
	var log bytes.Buffer
	cmd := exec.Command("ip", append([]string{
		"netns", "exec", l.namespace(id), filepath.Join(frrDaemons, name), "-f", file, "-i", filepath.Join(dir, name+".pid"),
		"--vty_socket", dir, "-z", filepath.Join(dir, "zserv"), "-P", "0", "--log", "stdout",
	}, options...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	l.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		if l.t.Failed() {
			l.t.Logf("%s of %s: %s", name, l.fabric.Node(id).Name, log.String())
		}
	})
	eventually(l.t, name+" answers", func() bool {
		select {
		case <-ended:
			l.t.Fatalf("%s of %s ended", name, l.fabric.Node(id).Name)
		default:
		}
		return exec.Command("vtysh", "--vty_socket", dir, "-d", name, "-c", "show version").Run() == nil
	})
}

// network has the switch of a host announce it, or withdraw it.
func (l *frrLab) network(host model.NodeID, announced bool) {
	l.t.Helper()
	n := l.fabric.Node(host)
	line := "network " + n.IPv4.String() + "/32"
	if !announced {
		line = "no " + line
	}
	id := n.Ports[0].Peer.Node
	l.run("vtysh", "--vty_socket", filepath.Join(l.dir, l.fabric.Node(id).Name), "-d", "bgpd", "-c", "configure terminal",
		"-c", fmt.Sprintf("router bgp %d", 65000+id), "-c", "address-family ipv4 unicast", "-c", line)
}

// sender is the address of this host that a switch's BMP comes from.
func sender(id model.NodeID) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(id)}) }

// relay listens for BMP in a switch's namespace, and connects to the service for it: so no link
// leads out of the fabric.
func (l *frrLab) relay(id model.NodeID, to string) {
	l.t.Helper()
	var in net.Listener
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends
		h, err := netns.GetFromName(l.namespace(id))
		if err == nil {
			err = netns.Set(h)
			h.Close()
		}
		if err == nil {
			in, err = net.Listen("tcp", "127.0.0.1:11019")
		}
		opened <- err
	}()
	if err := <-opened; err != nil {
		l.t.Fatal(err)
	}
	var all sync.WaitGroup
	ctx := l.t.Context() // ends before cleanups
	all.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(sender(id), 0))}
				out, err := d.DialContext(ctx, "tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					io.Copy(io.Discard, out) // until the service closes its end
					c.Close()
				}()
				io.Copy(out, c)
			})
		}
	})
	l.t.Cleanup(func() {
		in.Close()
		all.Wait()
	})
}

// TestFRRRoutesDrift: real routers of a leaf-spine fabric send their routes by BMP. A host that
// its leaf no longer announces is drift, an incident, and closed when it is announced again; a
// replay of the recording finds the same.
func TestFRRRoutesDrift(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces")
	}
	if _, err := exec.LookPath("vtysh"); err != nil {
		t.Fatalf("%v (install it: scripts/need vtysh:frr)", err)
	}
	f, err := topo.LeafSpine(2, 2, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	writeTopology(t, cfg.Topology, f)
	cfg.Record.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	set(t, &cfg, "bmp.listen", "127.0.0.1:0")
	set(t, &cfg, "bmp.settle", "300ms")
	for _, id := range f.Switches() {
		cfg.Switches = append(cfg.Switches, Switch{Name: f.Node(id).Name, Values: map[string]string{"address": sender(id).String()}})
	}
	b := start(t, cfg)
	l := startFRR(t, f, b.address("bmp"))
	// Each switch has one row for every host that is not attached to it.
	eventually(t, "all routes are as intended", func() bool { return b.routeStates("same") == 2*2+2 })
	eventually(t, "no incident is open", func() bool { return b.openIncidents() == 0 })

	h1, _ := f.ByName("h1")
	l.network(h1, false)
	eventually(t, "three switches have no route to h1", func() bool { return b.routeStates("no-route") == 3 })
	eventually(t, "that is an incident", func() bool { return b.openIncidents() > 0 })
	for _, in := range b.incidents() {
		if in.State == "open" && in.Cause != "wrong-route" {
			t.Errorf("incident %s at %s: %s; want wrong-route", in.Cause, in.Location, in.Summary)
		}
	}
	l.network(h1, true)
	eventually(t, "all routes are as intended again", func() bool { return b.routeStates("same") == 2*2+2 })
	eventually(t, "no incident is open again", func() bool { return b.openIncidents() == 0 })
	if st := b.stage("bmp"); st.Out == 0 {
		t.Errorf("bmp took %d of %d messages; want some", st.Out, st.In)
	}
	b.clean("bmp")
	b.clean("routes")
	if h := b.Health(); h.NoData != nil {
		t.Errorf("health says %q after routes came; want no such state", h.State)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	_, found := replayed(t, cfg, capture.Input{Path: cfg.Record.Path})
	if found.Reports["bmp"] == 0 || len(found.Incidents) == 0 {
		t.Errorf("the replay found %d messages and %d incidents; want some of both", found.Reports["bmp"], len(found.Incidents))
	}
}

func writeTopology(t *testing.T, path string, f *topo.Fabric) {
	t.Helper()
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(w, file.YAML, &file.Document{Fabric: f}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// routeStates counts routes with a state.
func (b *bed) routeStates(state string) (n int) {
	b.t.Helper()
	list, err := b.api.Routes(b.t.Context(), api.RoutesQuery{})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].State == state {
			n++
		}
	}
	return n
}

func (b *bed) openIncidents() (n int) {
	b.t.Helper()
	for _, in := range b.incidents() {
		if in.State == "open" {
			n++
		}
	}
	return n
}
