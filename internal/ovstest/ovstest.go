// Package ovstest runs a real exporter for tests: Open vSwitch.
package ovstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
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
	return v
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

// Send sends UDP packets from the first host to port 9 of the second, with 2 bytes each.
func (v *Switch) Send(packets int) {
	v.t.Helper()
	v.Run("ip", "netns", "exec", v.hosts[0], "bash", "-c", fmt.Sprintf("for ((i=0; i<%d; i++)); do echo x > /dev/udp/10.9.0.2/9; done", packets))
}

// Index returns the ifIndex of an interface of the switch, as its own kernel has it.
func (v *Switch) Index(name string) (n uint32) {
	v.t.Helper()
	if _, err := fmt.Sscanf(v.Run("ip", "-o", "link", "show", name), "%d:", &n); err != nil {
		v.t.Fatal(err)
	}
	return n
}
