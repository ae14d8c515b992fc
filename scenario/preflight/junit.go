package preflight

import (
	"encoding/xml"
	"io"
	"strings"
)

// Types of JUnit's XML, as CI systems read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the check as a test suite with a case for each rule. A rule with
// a fault or warning fails; notes are output of a case that passes.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "weft check " + r.Fabric}
	for _, rule := range rules {
		c := junitCase{Class: "weft.check", Name: rule.ID}
		var bad, notes []string
		worst := Warning
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Rule != rule.ID {
				continue
			}
			line := string(f.Severity) + ": " + f.Text
			if f.Mend != "" {
				line += "\n  mend: " + f.Mend
			}
			if f.Severity == Note {
				notes = append(notes, line)
				continue
			}
			if f.Severity == Fault {
				worst = Fault
			}
			bad = append(bad, line)
		}
		if len(bad) > 0 {
			first, _, _ := strings.Cut(bad[0], "\n")
			c.Failure = &junitFailure{Message: first, Type: string(worst), Text: strings.Join(bad, "\n")}
			suite.Failures++
		}
		c.Out = strings.Join(notes, "\n")
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
