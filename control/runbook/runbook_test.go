package runbook

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
)

var everything = Place{
	Switch: "tor6", Port: "Ethernet8", Peer: "leaf6", PeerPort: "Ethernet12", Host: "h12", HostPort: "eth0",
	Address: "10.3.0.2", Cycle: []string{"tor6", "leaf6"},
}

// TestEveryCauseHasSteps: every cause has steps for every system where all is known and
// where only a switch is; names are filled in, and what changes the switch comes last.
func TestEveryCauseHasSteps(t *testing.T) {
	for c := range anomaly.NumCauses {
		for name, p := range map[string]Place{"all": everything, "switch and address": {Switch: "tor6", Address: "10.3.0.2"}, "switch and port": {Switch: "tor6", Port: "Ethernet8"}} {
			steps := Steps(c, p)
			if len(steps) == 0 {
				t.Errorf("%v with %s has no steps", c, name)
			}
			changed := false
			for _, s := range steps {
				checkStep(t, c, s)
				if changed && !s.Changes {
					t.Errorf("%v: %q only shows something and comes after a step that changes the switch", c, s.Text)
				}
				changed = changed || s.Changes
			}
		}
	}
}

func checkStep(t *testing.T, c anomaly.Cause, s Step) {
	t.Helper()
	var systems, all []string
	for _, cmd := range s.Commands {
		systems, all = append(systems, cmd.System), append(all, cmd.Lines...)
	}
	if got := strings.Join(systems, " "); got != strings.Join(Systems(), " ") && got != "linux" {
		t.Errorf("%v: %q has commands of %q; want those of %v", c, s.Text, got, Systems())
	}
	for _, text := range append(all, s.Text, s.Node) {
		if text == "" || strings.ContainsAny(text, "{}\n") || strings.Contains(text, "  ") {
			t.Errorf("%v: %q of %q is not filled in", c, text, s.Text)
		}
	}
}

// TestNamesOfTheIncident: the commands have the port, prefix and host of the incident.
func TestNamesOfTheIncident(t *testing.T) {
	for _, w := range []struct {
		cause        anomaly.Cause
		system, want string
	}{
		{anomaly.Storm, "sonic", "sudo config interface shutdown Ethernet8"},
		{anomaly.Storm, "eos", "interface Ethernet8"},
		{anomaly.Storm, "linux", "ethtool -S eth0"},
		{anomaly.Storm, "sonic", "show pfc counters"},
		{anomaly.Blackhole, "eos", "show ip route 10.3.0.2"},
		{anomaly.Blackhole, "cumulus", "sudo vtysh -c 'show ip route 10.3.0.2'"},
		{anomaly.Loss, "eos", "show interfaces Ethernet12 counters errors"},
		{anomaly.DeadLink, "sonic", "show interfaces transceiver eeprom --dom Ethernet8"},
		{anomaly.Incast, "sonic", "show queue counters Ethernet8"},
	} {
		var lines []string
		for _, s := range Steps(w.cause, everything) {
			for _, c := range s.Commands {
				if c.System == w.system {
					lines = append(lines, c.Lines...)
				}
			}
		}
		if !strings.Contains(strings.Join(lines, "\n"), w.want) {
			t.Errorf("%v on %s: %q; want %q", w.cause, w.system, lines, w.want)
		}
	}
}

// TestCycleIsRepeated: the routes of a loop are looked at on each of its switches.
func TestCycleIsRepeated(t *testing.T) {
	var nodes []string
	for _, s := range Steps(anomaly.Loop, everything) {
		if !s.Changes && strings.Contains(s.Text, "route") {
			nodes = append(nodes, s.Node)
		}
	}
	if got := strings.Join(nodes, " "); got != "tor6 leaf6" {
		t.Errorf("routes are looked at on %q; want tor6 leaf6", got)
	}
	long := everything
	long.Cycle = []string{"a", "b", "c", "d", "e", "f"}
	if n := len(Steps(anomaly.Loop, long)); n > maxCycle+2 {
		t.Errorf("%d steps for a loop of six switches", n)
	}
}

// TestNamesAreNoCommands: a name that a shell would read as a command is in no step.
func TestNamesAreNoCommands(t *testing.T) {
	for _, name := range []string{"Ethernet8; reboot", "$(reboot)", "a b", "-x", "`x`", "x\ny", "x|y", "'", ""} {
		p := everything
		p.Port = name
		for c := range anomaly.NumCauses {
			for _, s := range Steps(c, p) {
				for _, cmd := range s.Commands {
					if name != "" && strings.Contains(strings.Join(cmd.Lines, "\n"), name) && name != "'" {
						t.Errorf("%v: %q is in %q", c, name, cmd.Lines)
					}
				}
				if strings.Contains(s.Text, "Ethernet8") {
					t.Errorf("%v: %q has a port that is not the incident's", c, s.Text)
				}
			}
		}
	}
}

// TestIPv6Routes: the route to an IPv6 address is asked for as one.
func TestIPv6Routes(t *testing.T) {
	p := everything
	p.Address, p.IPv6 = "2001:db8::2", true
	steps := Steps(anomaly.WrongRoute, p)
	if got := steps[0].Commands[0].Lines[0]; got != "show ipv6 route 2001:db8::2" {
		t.Errorf("%q; want show ipv6 route", got)
	}
}
