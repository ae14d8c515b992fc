package preflight

import (
	"encoding/json"
	"io"
	"slices"
)

// Types of SARIF 2.1.0, as far as a check needs them.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string       `json:"id"`
		About sarifMessage `json:"shortDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// WriteSARIF writes the findings for code scanning, as results in the file that was
// checked. Ports and nodes are logical locations.
func (r *Report) WriteSARIF(w io.Writer, file, version string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "weft check", Version: version}}, Results: []sarifResult{}}
	for _, rule := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule.ID, sarifMessage{rule.About}})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		level := string(f.Severity)
		if f.Severity == Fault {
			level = "error"
		}
		text := f.Text
		if f.Mend != "" {
			text += ". To mend it, " + f.Mend
		}
		at := sarifLocation{Physical: sarifPhysical{sarifArtifact{file}, sarifRegion{1}}}
		for _, p := range f.Places {
			at.Logical = append(at.Logical, sarifLogical{p, "resource"})
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule }),
			Level: level, Message: sarifMessage{text + "."}, Locations: []sarifLocation{at},
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}
