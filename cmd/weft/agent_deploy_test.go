package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	execStart    = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/weft (.+) \$WEFT_AGENT_OPTIONS$`)
	capabilities = regexp.MustCompile(`(?m)^AmbientCapabilities=(.+)$`)
)

// unit returns the command line and the capabilities of a systemd unit.
func unit(t *testing.T, name string) (args, capable []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/systemd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	start, granted := execStart.FindSubmatch(text), capabilities.FindSubmatch(text)
	if start == nil || granted == nil {
		t.Fatalf("%s has no ExecStart of weft, or no AmbientCapabilities", name)
	}
	return strings.Fields(string(start[1])), strings.Fields(string(granted[1]))
}

// daemonSet returns the arguments and the capabilities of the DaemonSet.
func daemonSet(t *testing.T) (args, capable []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/weft-agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Spec struct {
			Template struct {
				Spec struct {
					HostNetwork bool `yaml:"hostNetwork"`
					Containers  []struct {
						Args            []string
						SecurityContext struct{ Capabilities struct{ Add, Drop []string } } `yaml:"securityContext"`
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template.Spec
	if !pod.HostNetwork || len(pod.Containers) != 1 {
		t.Fatalf("DaemonSet %+v; want one container in the host's network", set)
	}
	return pod.Containers[0].Args, pod.Containers[0].SecurityContext.Capabilities.Add
}

// TestDeployedAgentsAreCommands: what units and DaemonSet start are commands with flags
// that exist.
func TestDeployedAgentsAreCommands(t *testing.T) {
	lines := map[string][]string{}
	for _, name := range []string{"weft-agent.service", "weft-host.service"} {
		lines[name], _ = unit(t, name)
	}
	lines["DaemonSet"], _ = daemonSet(t)
	for name, args := range lines {
		for _, fault := range commandFaults(os.DirFS("../.."), args) {
			t.Errorf("%s: weft %s: %s", name, strings.Join(args, " "), fault)
		}
	}
}

// TestAgentsNeedOnlyTheirCapabilities runs agents as a user without privileges but those of
// the deployment, in a network namespace of their own, until they have attached.
func TestAgentsNeedOnlyTheirCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give capabilities")
	}
	dir := readableByAll(t)
	runtime.LockOSThread() // the thread ends with the test, and its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	_, ofAgent := unit(t, "weft-agent.service")
	_, ofHost := unit(t, "weft-host.service")
	_, ofPod := daemonSet(t)
	for _, run := range []struct {
		capable []string
		says    string
		args    []string
	}{
		{ofAgent, "msg=attached", []string{"agent", "--topology", "fabric.yaml", "--node", "leaf0", "--interface", "lo=1", "--attach"}},
		{ofHost, `msg="watching this host"`, []string{"agent", "--host", "--drops"}},
		{ofPod, `msg="watching this host"`, []string{"agent", "--host", "--drops"}},
		{nil, `msg="watching this host"`, []string{"agent", "--host"}},
	} {
		runUnprivileged(t, dir, run.capable, run.says, run.args)
	}
}

// readableByAll is a folder with a topology and weft that any user can run.
func readableByAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := exec.LookPath("weft")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"weft": binary, "fabric.yaml": []byte("generate: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 1}\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runUnprivileged runs weft until it says something, interrupts it, and wants it to end well.
func runUnprivileged(t *testing.T, dir string, capable []string, says string, args []string) {
	t.Helper()
	granted := "-all"
	for _, c := range capable {
		granted += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	words := []string{"--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + granted, "--ambient-caps=" + granted, "--bounding-set=" + granted, "--no-new-privs", filepath.Join(dir, "weft")}
	cmd := exec.Command("setpriv", append(words, args...)...)
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	found := false
	for lines := bufio.NewScanner(out); !found && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		found = strings.Contains(lines.Text(), says)
	}
	if !found {
		t.Errorf("weft %q with %v says\n%swant %s", args, capable, &said, says)
	}
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
	if err := cmd.Wait(); err != nil {
		t.Errorf("weft %q with %v: %v\n%s", args, capable, err, &said)
	}
}
