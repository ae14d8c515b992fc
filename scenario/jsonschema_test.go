package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/jsonschema/check"
)

// TestJSONSchema: the schema takes every example, and no key or value that the reader
// refuses; each key has a description.
func TestJSONSchema(t *testing.T) {
	text := JSONSchema()
	s, err := check.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckYAML(text); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	const base = "duration: 1ms\ntopology: {generate: {kind: fat-tree, k: 4}}\n"
	if err := s.CheckYAML([]byte(base)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		base + "durations: 2ms", base + "fabric: {bufer: 1MB}", base + "traffic: [{kind: incast, fan-in: 3}]",
		base + "traffic: [{kind: incest}]", base + "traffic: [{fanin: 3}]", base + "faults: [{kind: storm, port: h0}]",
		base + "telemetry: [{kind: flowset, slots: 1ms}]", base + "expect: {drop: none}", base + "expect: {groups: {a: {pauses: none}}}",
		base + "expect: {diagnoses: [{anomalies: pfc-storm}]}", base + "fabric: {congestion-control: {algorithm: dcqcn, beta: 1}}",
		base + "fabric: {congestion-control: bbr}", base + "fabric: {ecn: [{kmin: 1KB}]}", base + "fabric: {pfc: perhaps}",
		base + "traffic: [{kind: flows, list: [{from: h0, too: h1}]}]", base + "moves: [{late: [{swtches: leaf0}]}]",
		"duration: 1ms\ntopology: {generate: {kind: fat-tree, kk: 4}}\n", "duration: 1ms\ntopology: {nodes: [{name: a}]}\n", "duration: 1ms\n",
		"topology: {generate: {kind: fat-tree, k: 4}}\n",
	} {
		if s.CheckYAML([]byte(text)) == nil {
			t.Errorf("the schema takes %s", text)
		}
		if _, err := Parse("t.yaml", []byte(text)); err == nil {
			t.Errorf("the reader takes %s", text)
		}
	}
	for key, about := range keyDocs {
		if !strings.Contains(string(text), about) {
			t.Errorf("what is said of %s is in no place of the schema", key)
		}
	}
	for _, path := range s.WithoutDescription() {
		t.Errorf("%s has no description", path)
	}
}
