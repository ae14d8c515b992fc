package preflight

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
)

// required lists what the schema of SARIF 2.1.0 requires of each object a report
// has, by its path; [] stands for every item of a list.
var required = map[string][]string{
	"":                           {"version", "runs"},
	"runs[]":                     {"tool"},
	"runs[].tool":                {"driver"},
	"runs[].tool.driver":         {"name"},
	"runs[].tool.driver.rules[]": {"id"},
	"runs[].results[]":           {"message"},
	"runs[].results[].message":   {"text"},
	"runs[].results[].locations[].physicalLocation":                  {"artifactLocation"},
	"runs[].results[].locations[].physicalLocation.artifactLocation": {"uri"},
}

// objects collects the objects of a document by path.
func objects(path string, v any, into map[string][]map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		into[path] = append(into[path], v)
		for key, child := range v {
			objects(strings.TrimPrefix(path+"."+key, "."), child, into)
		}
	case []any:
		for _, child := range v {
			objects(path+"[]", child, into)
		}
	}
}

func TestSARIF(t *testing.T) {
	r := check(t, "topology: {generate: {kind: ring, switches: 4}}\nfabric: {headroom: 1KB}", Options{})
	var out bytes.Buffer
	if err := r.WriteSARIF(&out, "fabric.yaml", "v1"); err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]map[string]any)
	objects("", doc, found)
	for path, keys := range required {
		if len(found[path]) == 0 {
			t.Errorf("no object %q", path)
		}
		for _, o := range found[path] {
			for _, key := range keys {
				if o[key] == nil || o[key] == "" {
					t.Errorf("%q has no %s: %v", path, key, o)
				}
			}
		}
	}
	if found[""][0]["version"] != "2.1.0" {
		t.Errorf("version %v; want 2.1.0", found[""][0]["version"])
	}
	if n := len(found["runs[].results[]"]); n != len(r.Findings) || n < 2 {
		t.Errorf("%d results of %d findings; want all", n, len(r.Findings))
	}
	ids := found["runs[].tool.driver.rules[]"]
	for _, result := range found["runs[].results[]"] {
		level := fmt.Sprint(result["level"])
		if !strings.Contains(" none note warning error ", " "+level+" ") {
			t.Errorf("level %q; want one of SARIF's", level)
		}
		if i := int(result["ruleIndex"].(float64)); i < 0 || ids[i]["id"] != result["ruleId"] {
			t.Errorf("rule index %d of %v; want that of %v", i, result["ruleId"], ids)
		}
	}
}

func TestJUnit(t *testing.T) {
	r := check(t, "topology: {generate: {kind: ring, switches: 4}}\nfabric: {headroom: 1KB}", Options{})
	r.Findings = append(r.Findings, Finding{Rule: "no-fallback", Severity: Note, Text: "two <failures>"})
	var out bytes.Buffer
	if err := r.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	s := suites.Suites[0]
	if s.Tests != len(rules) || s.Tests != len(s.Cases) || s.Failures != 2 {
		t.Errorf("%d tests, %d cases, %d failures; want %d tests and 2 failures", s.Tests, len(s.Cases), s.Failures, len(rules))
	}
	for _, c := range s.Cases {
		failed := c.Name == "buffer-cycle" || c.Name == "headroom"
		if (c.Failure != nil) != failed {
			t.Errorf("case %s: failure %+v; want one: %v", c.Name, c.Failure, failed)
		}
		if c.Name == "no-fallback" && c.Out != "note: two <failures>" {
			t.Errorf("output of %s: %q", c.Name, c.Out)
		}
	}
}
