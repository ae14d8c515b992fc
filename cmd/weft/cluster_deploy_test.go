package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weft-telemetry/weft/control/serve"
)

// clusterMember is a process of a shipped cluster.
type clusterMember struct {
	args []string
	env  map[string]string
}

// clusterMembers are those of the compose file, the manifests and the unit, which has a role
// by its name.
func clusterMembers(t *testing.T) map[string][]clusterMember {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile("../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	all := map[string][]clusterMember{}
	var compose struct {
		Services map[string]struct {
			Image       string
			Command     []string
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal(read("compose/compose.yaml"), &compose); err != nil {
		t.Fatal(err)
	}
	for _, s := range compose.Services {
		if strings.HasPrefix(s.Image, "weft") {
			all["compose.yaml"] = append(all["compose.yaml"], clusterMember{s.Command, s.Environment})
		}
	}
	for doc := range bytes.SplitSeq(read("kubernetes/weft-cluster.yaml"), []byte("\n---\n")) {
		var d struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Args []string
							Env  []struct{ Name, Value string }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			m := clusterMember{c.Args, map[string]string{}}
			for _, e := range c.Env {
				m.env[e.Name] = e.Value
			}
			all["weft-cluster.yaml"] = append(all["weft-cluster.yaml"], m)
		}
	}
	unit := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/weft (.+)$`).FindSubmatch(read("systemd/weft@.service"))
	if unit == nil {
		t.Fatal("weft@.service has no ExecStart of weft")
	}
	for _, role := range []string{"decode", "analyze", "lead", "api"} {
		args := strings.Fields(strings.ReplaceAll(string(unit[1]), "%i", role))
		all["weft@.service"] = append(all["weft@.service"], clusterMember{args, nil})
	}
	return all
}

// TestClusterIsDeployed: each shipped cluster has a process of every role, whose command
// line and variables are valid with the shipped configuration.
func TestClusterIsDeployed(t *testing.T) {
	dir := t.TempDir()
	config, err := os.ReadFile("../../deploy/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"cluster.yaml": config, "fabric.yaml": []byte("generate: {kind: fat-tree, k: 4}\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, members := range clusterMembers(t) {
		var roles []string
		for _, m := range members {
			if faults := commandFaults(os.DirFS("../.."), m.args); len(faults) > 0 {
				t.Errorf("%s: weft %s: %v", file, strings.Join(m.args, " "), faults)
			}
			role := m.args[slices.Index(m.args, "--role")+1]
			roles = append(roles, role)
			var known []string
			for _, s := range serve.Settings() {
				known = append(known, s.Env())
			}
			for name := range m.env {
				if !slices.Contains(known, name) {
					t.Errorf("%s: %s: variable %s is no setting", file, role, name)
				}
			}
			lookup := func(name string) (string, bool) {
				v, ok := m.env[name]
				if ok && (v == "" || strings.HasPrefix(v, "$")) {
					v = "a-secret-of-the-operator" // from a Secret, or the environment of compose
				}
				return v, ok
			}
			cfg, err := serve.Source{
				File: filepath.Join(dir, "cluster.yaml"), Env: lookup, Flags: map[string]string{"role": role, "topology": filepath.Join(dir, "fabric.yaml")},
			}.Load()
			if err != nil {
				t.Errorf("%s: %s: %v", file, role, err)
			} else if cfg.Stream.URL == "" || cfg.Stream.Metrics == "" {
				t.Errorf("%s: %s: no stream.url, or no stream.metrics", file, role)
			}
		}
		slices.Sort(roles)
		if want := []string{"analyze", "api", "decode", "lead"}; !slices.Equal(roles, want) {
			t.Errorf("%s has the roles %v; want %v", file, roles, want)
		}
	}
}
