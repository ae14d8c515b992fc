package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// ExpectedDiagnosis is a diagnosis that a run must yield. Omitted fields match
// anything.
type ExpectedDiagnosis struct {
	Position   Position
	Text       string // as it was written
	Anomaly    string
	Cause      string
	Detail     string
	Initial    *model.Port
	Culprits   []string // "h0>h15": all of these are named
	Persistent *bool
}

// diagnosesSpec is diagnoses in the section expect: a list, or none.
type diagnosesSpec struct {
	given bool
	list  []diagnosisSpec
}

type diagnosisSpec struct {
	sourcePos
	Anomaly    string `yaml:"anomaly"`
	Cause      string `yaml:"root-cause"`
	Detail     string `yaml:"detail"`
	Initial    ref    `yaml:"initial"` // a port
	Culprits   []ref  `yaml:"culprits"`
	Persistent bool   `yaml:"persistent"`
}

func (p *diagnosesSpec) decode(v tree.Value, what string) error {
	p.given = true
	if text, err := v.Text(what); err == nil && strings.TrimSpace(text) == "none" {
		return nil
	}
	return decode(v, &p.list, what)
}

// resolveDiagnoses resolves the names of expected diagnoses.
func (sc *schema) resolveDiagnoses(s *Scenario, e *env) error {
	spec := &sc.Expect.diagnoses
	if !spec.given {
		return nil
	}
	s.ExpectDiagnoses = []ExpectedDiagnosis{}
	for i := range spec.list {
		d := &spec.list[i]
		want := ExpectedDiagnosis{Position: d.Position, Anomaly: d.Anomaly, Cause: d.Cause, Detail: d.Detail}
		var text []string
		for _, f := range []struct {
			key, value string
			into       interface{ UnmarshalText([]byte) error }
		}{{"anomaly", d.Anomaly, new(anomaly.Type)}, {"root-cause", d.Cause, new(anomaly.RootCause)}, {
			"detail", d.Detail,
			new(anomaly.Detail),
		}} {
			if !d.has(f.key) {
				continue
			}
			if err := f.into.UnmarshalText([]byte(f.value)); err != nil {
				return d.errorf(f.key, "%s", trimPackageNames(err))
			}
			text = append(text, f.value)
		}
		if d.Initial.given() {
			p, err := e.port(d.Initial)
			if err != nil {
				return err
			}
			want.Initial = &p
			text = append(text, "at "+d.Initial.text)
		}
		for _, r := range d.Culprits {
			from, to, ok := strings.Cut(r.text, ">")
			if !ok {
				return r.Errorf("culprit %q, want a flow such as h0>h15", r.text)
			}
			for _, name := range []string{from, to} {
				if _, err := e.node(ref{r.Position, name}); err != nil {
					return err
				}
			}
			want.Culprits = append(want.Culprits, r.text)
		}
		if len(want.Culprits) > 0 {
			text = append(text, "by "+strings.Join(want.Culprits, " "))
		}
		if d.has("persistent") {
			want.Persistent = &d.Persistent
			text = append(text, "persistent "+onOff(d.Persistent))
		}
		if want.Text = strings.Join(text, " "); want.Text == "" {
			return d.errorf("", "diagnosis %d has no fields, want an anomaly", i+1)
		}
		s.ExpectDiagnoses = append(s.ExpectDiagnoses, want)
	}
	return nil
}

// matches reports whether a diagnosis is as expected.
func (w *ExpectedDiagnosis) matches(n *diagnose.VerdictView, x *session) bool {
	switch {
	case w.Anomaly != "" && w.Anomaly != n.Anomaly.String(),
		w.Cause != "" && w.Cause != n.Cause.String(),
		w.Detail != "" && w.Detail != n.Detail.String(),
		w.Persistent != nil && *w.Persistent != n.Persistent:
		return false
	}
	if w.Initial != nil && (n.Initial == nil || n.Initial.Port != w.Initial.Port || n.Initial.Node != x.fabric.Node(w.Initial.Node).Name) {
		return false
	}
	for _, c := range w.Culprits {
		if !slices.ContainsFunc(n.Culprits, func(p diagnose.CulpritView) bool { return p.Src+">"+p.Dst == c }) {
			return false
		}
	}
	return true
}

// judgeDiagnoses compares diagnoses with the expected ones.
func (r *Result) judgeDiagnoses(x *session) (list []Judged) {
	got := "none"
	var found []string
	for i := range r.Diagnoses {
		if n := &r.Diagnoses[i]; n.Anomaly != anomaly.None {
			found = append(found, abbreviate(n))
		}
	}
	if len(found) > 0 {
		got = strings.Join(found, "; ")
	}
	if len(x.s.ExpectDiagnoses) == 0 {
		return []Judged{{What: "diagnoses", Want: "none", Got: got, Pass: len(found) == 0}}
	}
	for i := range x.s.ExpectDiagnoses {
		w := &x.s.ExpectDiagnoses[i]
		j := Judged{What: fmt.Sprintf("diagnosis %d", i+1), Want: w.Text, Got: got}
		if at := slices.IndexFunc(r.Diagnoses, func(n diagnose.VerdictView) bool { return w.matches(&n, x) }); at >= 0 {
			j.Got, j.Pass = abbreviate(&r.Diagnoses[at]), true
		}
		list = append(list, j)
	}
	return list
}

// abbreviate returns a diagnosis in a few words.
func abbreviate(n *diagnose.VerdictView) string {
	text := fmt.Sprintf("%v %v %v", n.Anomaly, n.Cause, n.Detail)
	if n.Initial != nil {
		text += " at " + n.Initial.String()
	}
	return text
}
