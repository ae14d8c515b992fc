package sflow

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	goflow "github.com/netsampler/goflow2/v2/decoders/sflow"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"golang.org/x/sys/unix"
)

// TestOpenVSwitch: a real exporter, Open vSwitch with its userspace datapath, forwards between
// two hosts in network namespaces. Its samples have the port pair and the flow, scale
// to what was sent within their error, and its counters agree with the sender.
func TestOpenVSwitch(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Fatalf("%v (install it: scripts/need ovs-vswitchd:openvswitch-switch)", err)
	}
	const sent, sampling = 4000, 8
	v := startSwitch(t)
	v.run("ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=standalone")
	for i, ns := range v.hosts {
		host, port := fmt.Sprintf("h%d", i+1), fmt.Sprintf("p%d", i+1)
		v.run("ip", "link", "add", port, "type", "veth", "peer", "name", host, "netns", ns)
		v.run("ip", "link", "set", port, "up")
		v.run("ip", "-n", ns, "addr", "add", fmt.Sprintf("10.9.0.%d/24", i+1), "dev", host)
		v.run("ip", "-n", ns, "link", "set", host, "up")
		v.run("ovs-vsctl", "add-port", "br0", port)
	}
	indexes := [2]uint32{v.index("p1"), v.index("p2")}
	v.run("ip", "link", "set", "lo", "up")
	v.run("ip", "link", "add", "mgmt", "type", "veth", "peer", "name", "mgmt-peer")
	v.run("ip", "addr", "add", "10.9.9.1/24", "dev", "mgmt")
	v.run("ip", "link", "set", "mgmt", "up")

	// The socket is in the switch's namespace.
	got := &bench{}
	f := &source.Fabric{}
	port := func(name string) (model.PortID, bool) {
		return map[string]model.PortID{"p1": 1, "p2": 2}[name], name == "p1" || name == "p2"
	}
	f.Switches = []source.Switch{{Name: "ovs", Ports: 2, Port: port, Rate: func(model.PortID) model.Rate { return 100e9 }}}
	var err error
	if f.Identity, err = identity.New([]identity.Switch{{Name: "ovs", Addrs: []netip.Addr{netip.MustParseAddr("10.9.9.1")}, Ports: 2, Port: port}}); err != nil {
		t.Fatal(err)
	}
	named := make(chan struct{}, 1)
	events := make(chan func(), 1000) // what the decoder's goroutine saw, for this one
	cfg := &Config{Listen: netip.MustParseAddrPort("127.0.0.1:0")}
	d, err := cfg.NewDecoder(f, source.Output{
		Reading: func(r *portstat.Reading) { one := *r; events <- func() { got.readings = append(got.readings, one) } },
		Sample:  func(s *portstat.Sample) { one := *s; events <- func() { got.samples = append(got.samples, one) } },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := cfg.OpenSocket(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var theirs int
	ended := make(chan error, 1)
	go func() {
		ended <- l.Run(ctx, func(_ model.Time, _, _ netip.AddrPort, data []byte, _ bool) {
			var p goflow.Packet
			if err := goflow.DecodeMessageVersion(bytes.NewBuffer(data), &p); err != nil {
				t.Errorf("goflow2: %v", err)
			}
			theirs += len(p.Samples)
			_, first := f.Identity.PortByIndex(0, indexes[0])
			_, second := f.Identity.PortByIndex(0, indexes[1])
			if first && second {
				select {
				case named <- struct{}{}:
				default:
				}
			}
		})
	}()
	v.run("ovs-vsctl", "--id=@s", "create", "sflow", "agent=mgmt", fmt.Sprintf(`target="%s"`, l.Addr()), "header=128", fmt.Sprintf("sampling=%d", sampling), "polling=1",
		"--", "set", "bridge", "br0", "sflow=@s")
	wait(t, ctx, events, func() bool { return len(named) > 0 }, "the names of both interfaces")
	v.run("ip", "netns", "exec", v.hosts[0], "bash", "-c", fmt.Sprintf("for ((i=0; i<%d; i++)); do echo x > /dev/udp/10.9.0.2/9; done", sent))

	flow := func(s *portstat.Sample) bool {
		return s.In == 1 && s.Out == 2 && s.Flow.Dst == model.AddrOf(netip.MustParseAddr("10.9.0.2")) && s.Flow.DstPort == 9 && s.Flow.Proto == model.UDP
	}
	counted := func(p model.PortID) (packets uint64) {
		for i := range got.readings {
			if got.readings[i].Port.Port == p {
				packets += got.readings[i].RxPackets
			}
		}
		return packets
	}
	wait(t, ctx, events, func() bool { return counted(1) >= sent }, "counters of all packets")
	// The agent sends samples within a second: two rounds of counters later all have come.
	rounds := len(got.readings) + 2*3
	wait(t, ctx, events, func() bool { return len(got.readings) >= rounds }, "later counters")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	drain(events)
	var estimate float64
	for i := range got.samples {
		if s := &got.samples[i]; flow(s) {
			estimate += float64(s.Rate)
		}
	}
	// A sum of n samples of 1:N has the error sqrt(sent*(N-1)); five of them are one in a million.
	if limit := 5 * math.Sqrt(sent*(sampling-1)); math.Abs(estimate-sent) > limit {
		t.Errorf("samples scale to %.0f packets from p1 to p2; want %d within %.0f", estimate, sent, limit)
	}
	c := l.Counters()
	for _, l := range c.Losses {
		if l.Count > 0 && !l.Expected && l.Reason != "unknown port" {
			t.Errorf("%d %s (%s); want none", l.Count, l.Reason, l.About)
		}
	}
	if c.In != uint64(theirs) {
		t.Errorf("%d samples; goflow2 finds %d", c.In, theirs)
	}
}

// wait takes events until a condition holds.
func wait(t *testing.T, ctx context.Context, events chan func(), ok func() bool, what string) {
	t.Helper()
	for !ok() {
		select {
		case f := <-events:
			f()
		case <-time.After(10 * time.Millisecond): // the condition may depend on others
		case <-ctx.Done():
			t.Fatalf("no %s: %v", what, ctx.Err())
		}
	}
}

func drain(events chan func()) {
	for {
		select {
		case f := <-events:
			f()
		default:
			return
		}
	}
}

// vswitch is an Open vSwitch in a network namespace of its own: that of this test's
// thread.
type vswitch struct {
	t     *testing.T
	env   []string
	hosts []string // namespaces
}

func startSwitch(t *testing.T) *vswitch {
	runtime.LockOSThread() // for good: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	v := &vswitch{t: t, env: append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)}
	for i := range 2 {
		ns := fmt.Sprintf("weft-sflow-%d-%d", os.Getpid(), i)
		v.run("ip", "netns", "add", ns)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
		v.hosts = append(v.hosts, ns)
	}
	db, socket := filepath.Join(dir, "conf.db"), "unix:"+filepath.Join(dir, "db.sock")
	v.run("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	v.daemon("ovsdb-server", db, "--remote=p"+socket)
	v.run("ovs-vsctl", "--retry", "--no-wait", "init")
	v.daemon("ovs-vswitchd", socket)
	return v
}

// run runs a command to its end.
func (v *vswitch) run(name string, args ...string) string {
	v.t.Helper()
	if name == "ovs-vsctl" {
		args = append([]string{"--timeout=30"}, args...)
	}
	cmd := exec.Command(name, args...)
	cmd.Env = v.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// daemon runs a command until the test ends.
func (v *vswitch) daemon(name string, args ...string) {
	v.t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(name, append(args, "--verbose=console:warn")...)
	cmd.Env, cmd.Stdout, cmd.Stderr = v.env, &log, &log
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if v.t.Failed() {
			v.t.Logf("%s: %s", name, log.String())
		}
	})
}

// index returns the ifIndex of an interface of the switch, as its own kernel has it.
func (v *vswitch) index(name string) (n uint32) {
	v.t.Helper()
	if _, err := fmt.Sscanf(v.run("ip", "-o", "link", "show", name), "%d:", &n); err != nil {
		v.t.Fatal(err)
	}
	return n
}
