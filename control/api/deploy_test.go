package api

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const deploy = "../../deploy/"

// promtool runs promtool (Debian package prometheus) and fails the test with its output.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestPromtool: rules and configuration are valid, alerts fire when they should,
// and metrics follow the conventions of Prometheus.
func TestPromtool(t *testing.T) {
	promtool(t, "", "check", "rules", deploy+"prometheus/weft.rules.yml")
	promtool(t, "", "check", "config", deploy+"prometheus/prometheus.yml")
	promtool(t, "", "test", "rules", deploy+"prometheus/weft.test.yml")
	promtool(t, metrics(t), "check", "metrics")
}

// metrics returns what a server exports after a call of every route.
func metrics(t *testing.T) string {
	t.Helper()
	s, k := newServer(t)
	for _, c := range calls(k) {
		do(s.Handler(), c.method, Prefix+c.path, c.body)
	}
	s.failures.add(addressPrefix(netip.MustParseAddr("10.0.0.1")))
	return do(s.Handler(), "GET", "/metrics", "").Body.String()
}

var metricName = regexp.MustCompile(`\bweft_[a-z0-9_]+`)

// exported returns the names of all series and families, with the labels of each.
func exported(text string) map[string]string {
	names := map[string]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "#" {
			names[f[2]] += ""
		} else if name := metricName.FindString(line); name != "" {
			names[name] += line
		}
	}
	return names
}

// TestMetricsExist: every metric of the dashboard, the rules and the manual is
// exported, and every exported metric is in the manual.
func TestMetricsExist(t *testing.T) {
	there := exported(metrics(t))
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	manual := read("../../docs/api.md")
	files := map[string]string{
		"weft.json": read(deploy + "grafana/weft.json"), "weft.rules.yml": read(deploy + "prometheus/weft.rules.yml"),
		"weft.test.yml": read(deploy + "prometheus/weft.test.yml"), "api.md": manual,
	}
	for file, text := range files {
		names := metricName.FindAllString(text, -1)
		if len(names) == 0 {
			t.Errorf("%s contains no metric", file)
		}
		for _, name := range names {
			if _, ok := there[name]; !ok {
				t.Errorf("%s contains %s, which is not exported", file, name)
			}
		}
	}
	for name := range there {
		family := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(name, "")
		if strings.HasPrefix(name, "weft_") && !strings.Contains(manual, "`"+family+"`") {
			t.Errorf("%s is exported and not in docs/api.md", family)
		}
	}
}

// TestLabelsExist: the labels and values that queries select by exist.
func TestLabelsExist(t *testing.T) {
	there := exported(metrics(t))
	selector := regexp.MustCompile(`(weft_[a-z_]+)\{([^}]*)\}`)
	matcher := regexp.MustCompile(`([a-z_]+)(=~?)"([^"]*)"`)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	b, err := os.ReadFile(deploy + "grafana/weft.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(deploy + "prometheus/weft.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	queries := []string{string(rules)}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, q.Expr)
		}
	}
	checked := 0
	for _, q := range queries {
		for _, m := range selector.FindAllStringSubmatch(q, -1) {
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if l[1] == "instance" || l[1] == "job" || l[1] == "code" {
					continue // Prometheus adds them; codes come with errors
				}
				checked++
				for _, value := range strings.Split(l[3], "|") {
					if !strings.Contains(there[m[1]], l[1]+`="`+value+`"`) && m[1] != "weft_stage_lost_total" {
						t.Errorf("%s: no series with %s=%q", m[0], l[1], value)
					}
				}
				if !strings.Contains(there[m[1]], l[1]+`="`) {
					t.Errorf("%s: no label %s", m[0], l[1])
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d labels found to check", checked)
	}
}

// TestServiceUnit: what the service writes is for its own user only, and it has
// more files than connections.
func TestServiceUnit(t *testing.T) {
	b, err := os.ReadFile(deploy + "systemd/weft.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"UMask=0077", "StateDirectoryMode=0700", "LimitNOFILE=65536", "NoNewPrivileges=yes", "ProtectSystem=strict",
		"RestrictSUIDSGID=yes", "SystemCallFilter=@system-service", "DynamicUser=yes",
	} {
		if !strings.Contains(string(b), "\n"+want+"\n") {
			t.Errorf("weft.service does not have %s", want)
		}
	}
}
