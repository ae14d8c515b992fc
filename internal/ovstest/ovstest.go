// Package ovstest runs a real exporter for tests: Open vSwitch.
package ovstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Switch is an Open vSwitch in a network namespace of its own: that of the test's
// thread.
type Switch struct {
	t     *testing.T
	env   []string
	hosts []string // namespaces
}

// Start starts a switch with the userspace datapath, which needs no kernel module, between two hosts in network
// namespaces: the bridge br0 has the ports p1, to 10.9.0.1, and p2, to 10.9.0.2.
func Start(t *testing.T) *Switch {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Fatalf("%v (install it: scripts/need ovs-vswitchd:openvswitch-switch)", err)
	}
	runtime.LockOSThread() // for good: the thread ends with the test's goroutine
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	v := &Switch{t: t, env: append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir)}
	for i := range 2 {
		ns := fmt.Sprintf("weft-ovs-%d-%d", os.Getpid(), i)
		v.Run("ip", "netns", "add", ns)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
		v.hosts = append(v.hosts, ns)
	}
	db, socket := filepath.Join(dir, "conf.db"), "unix:"+filepath.Join(dir, "db.sock")
	v.Run("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	v.daemon("ovsdb-server", db, "--remote=p"+socket)
	v.Run("ovs-vsctl", "--retry", "--no-wait", "init")
	v.daemon("ovs-vswitchd", socket)
	v.Run("ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=standalone")
	for i, ns := range v.hosts {
		host, port := fmt.Sprintf("h%d", i+1), fmt.Sprintf("p%d", i+1)
		v.Run("ip", "link", "add", port, "type", "veth", "peer", "name", host, "netns", ns)
		v.Run("ip", "link", "set", port, "up")
		v.Run("ip", "-n", ns, "addr", "add", fmt.Sprintf("10.9.0.%d/24", i+1), "dev", host)
		v.Run("ip", "-n", ns, "link", "set", host, "up")
		v.Run("ovs-vsctl", "add-port", "br0", port)
	}
	v.Run("ip", "link", "set", "lo", "up")
	v.learn()
	return v
}

// learn has both hosts and the switch know all addresses: packets that wait for an answer to a
// neighbour's request may be dropped, and those to an unknown address are flooded.
func (v *Switch) learn() {
	for i, ns := range v.hosts {
		var links []struct {
			Address string `json:"address"`
		}
		if err := json.Unmarshal([]byte(v.Run("ip", "-j", "-n", ns, "link", "show", fmt.Sprintf("h%d", i+1))), &links); err != nil || len(links) != 1 {
			v.t.Fatalf("interface of host %d: %v, %v", i+1, links, err)
		}
		other := v.hosts[1-i]
		v.Run("ip", "-n", other, "neigh", "replace", fmt.Sprintf("10.9.0.%d", i+1), "lladdr", links[0].Address, "dev", fmt.Sprintf("h%d", 2-i), "nud", "permanent")
	}
	for i := range v.hosts {
		v.send(1-i, 1)
	}
}

// Run runs a command to its end.
func (v *Switch) Run(name string, args ...string) string {
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
func (v *Switch) daemon(name string, args ...string) {
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

// Send sends UDP packets from the first host to port 9 of the second, with 2 bytes each, no faster
// than the switch forwards them.
func (v *Switch) Send(packets int) {
	v.t.Helper()
	v.send(1, packets)
}

// atOnce is how many packets the smallest queue of the path holds: the buffer of the switch's
// raw socket, 208 KiB, in which a packet takes less than 1 KiB.
const atOnce = 150

// send sends packets to a host, and waits until its kernel has received all of them.
func (v *Switch) send(to, packets int) {
	v.t.Helper()
	first := v.received(to)
	for sent := 0; sent < packets; {
		n := min(packets-sent, atOnce)
		v.Run("ip", "netns", "exec", v.hosts[1-to], "bash", "-c", fmt.Sprintf("for ((i=0; i<%d; i++)); do echo x > /dev/udp/10.9.0.%d/9; done", n, to+1))
		sent += n
		for deadline := time.Now().Add(time.Minute); v.received(to)-first < sent; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				v.t.Fatalf("host %d has received %d UDP packets of %d", to+1, v.received(to)-first, sent)
			}
		}
	}
}

// received is how many UDP packets a host has received for ports on which nothing listens. Its peer leaves
// their checksums to hardware that is not there: most count as errors.
func (v *Switch) received(host int) (sum int) {
	v.t.Helper()
	lines := strings.Split(v.Run("ip", "netns", "exec", v.hosts[host], "grep", "^Udp:", "/proc/net/snmp"), "\n")
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	for _, name := range []string{"NoPorts", "InErrors"} {
		n, err := strconv.Atoi(values[slices.Index(names, name)])
		if err != nil {
			v.t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// Index returns the ifIndex of an interface of the switch, as its own kernel has it.
func (v *Switch) Index(name string) (n uint32) {
	v.t.Helper()
	if _, err := fmt.Sscanf(v.Run("ip", "-o", "link", "show", name), "%d:", &n); err != nil {
		v.t.Fatal(err)
	}
	return n
}
