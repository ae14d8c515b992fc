package anomaly

import (
	"fmt"
	"slices"
	"strings"
)

// Row is what every entry of the table has.
type Row struct {
	Name   string // in JSON, filters and scenario files
	Title  string // a headline's first words
	Remedy string // what an operator tries first; may hold placeholders
	Doc    string // heading of the manual that describes it, as file#anchor
}

// typeRow is an anomaly of a diagnosis.
type typeRow struct {
	Row
	sentence string           // what it does to the victim, with placeholders
	incident Cause            // the cause of the incident that it is evidence of
	byDetail map[Detail]Cause // the same, where a detail makes it another
	atHost   bool             // the incident's location is the host at the other end of the initial port
	pfc      bool             // PFC carries it from port to port
	brief    bool             // it is minor while no port counts a pause long enough to matter
}

// rootRow is a root cause of a diagnosis.
type rootRow struct {
	Row
	trigger string // how it triggered a deadlock, with placeholders
}

// detailRow is how a root cause came about.
type detailRow struct {
	Row
	mayRecur   bool // a burst of this kind that recurs is a periodic burst
	winsMerges bool // one verdict that saw it is enough, whatever others on the same fault say
}

// causeRow is a cause of incidents.
type causeRow struct {
	Row
	headline string // what happens where, after the title, with placeholders
	severity Severity
	family   Family
	sources  []Source // that can show it, most useful first
	explains []Cause  // causes of other families that can be its consequences
	// fabricWide causes are one incident wherever they show at the same time.
	fabricWide bool
	// perPort causes at two ports are two incidents.
	perPort bool
}

// String returns the anomaly's name in reports.
func (t Type) String() string { return types[t].Name }

// MarshalText returns the anomaly's name.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses the anomaly's name.
func (t *Type) UnmarshalText(b []byte) error { return parseName(t, b, types[:], "anomaly") }

// Sentence returns what the anomaly does to its victim, with placeholders.
func (t Type) Sentence() string { return types[t].sentence }

// Remedy returns what an operator tries first, with placeholders.
func (t Type) Remedy() string { return types[t].Remedy }

// SpreadsByPFC reports whether PFC carries the anomaly from port to port.
func (t Type) SpreadsByPFC() bool { return types[t].pfc }

// AtHost reports whether the fault is located at the host that the initial port
// leads to, not at the port.
func (t Type) AtHost() bool { return types[t].atHost }

// MinorWhileBrief reports whether the anomaly is minor as long as the pauses
// that it causes are short.
func (t Type) MinorWhileBrief() bool { return types[t].brief }

// Cause returns the cause of the incident that a verdict is evidence of.
func (t Type) Cause(d Detail) Cause {
	if c, ok := types[t].byDetail[d]; ok {
		return c
	}
	return types[t].incident
}

// String returns the root cause's name in reports.
func (c RootCause) String() string { return roots[c].Name }

// MarshalText returns the root cause's name.
func (c RootCause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the root cause's name.
func (c *RootCause) UnmarshalText(b []byte) error { return parseName(c, b, roots[:], "root cause") }

// Trigger returns how the root cause triggered a deadlock, with placeholders.
func (c RootCause) Trigger() string { return roots[c].trigger }

// String returns the detail's name in reports.
func (d Detail) String() string { return details[d].Name }

// MarshalText returns the detail's name.
func (d Detail) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the detail's name.
func (d *Detail) UnmarshalText(b []byte) error { return parseName(d, b, details[:], "detail") }

// Remedy returns what an operator tries first, with placeholders.
func (d Detail) Remedy() string { return details[d].Remedy }

// MayRecur reports whether bursts with the detail are a periodic burst if they
// recur.
func (d Detail) MayRecur() bool { return details[d].mayRecur }

// WinsMerges reports whether the detail holds for merged verdicts if one of them
// has it.
func (d Detail) WinsMerges() bool { return details[d].winsMerges }

// CauseNames returns the names of all causes of incidents.
func CauseNames() []string {
	names := make([]string, len(causes))
	for i := range causes {
		names[i] = causes[i].Name
	}
	return names
}

// String returns the cause's name.
func (c Cause) String() string { return causes[c].Name }

// MarshalText returns the cause's name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the cause's name.
func (c *Cause) UnmarshalText(b []byte) error { return parseName(c, b, causes[:], "cause") }

// Title returns a headline's first words, such as "PFC storm".
func (c Cause) Title() string { return causes[c].Title }

// Headline returns what happens where, with placeholders.
func (c Cause) Headline() string { return causes[c].headline }

// Remedy returns what an operator tries first.
func (c Cause) Remedy() string { return causes[c].Remedy }

// Severity returns how much an incident of the cause matters.
func (c Cause) Severity() Severity { return causes[c].severity }

// Family returns the group of causes that can be the same fault.
func (c Cause) Family() Family { return causes[c].family }

// Sources returns the sources that can show the cause, most useful first.
func (c Cause) Sources() []Source { return causes[c].sources }

// FabricWide reports whether evidence of the cause at different switches is one
// incident.
func (c Cause) FabricWide() bool { return causes[c].fabricWide }

// PerPort reports whether evidence of the cause at two ports is two incidents.
func (c Cause) PerPort() bool { return causes[c].perPort }

// Related reports whether one of two causes can be a consequence of the other,
// or both can be the same fault as two sources see it.
func (c Cause) Related(o Cause) bool {
	return c.Family() == o.Family() || slices.Contains(causes[c].explains, o) || slices.Contains(causes[o].explains, c)
}

// Expand replaces the placeholders of a text. Pairs are names, with their
// braces, and values: Expand(text, "{host}", "h3").
func Expand(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// row gives parseName access to the common part.
func (r *Row) row() *Row { return r }

// parseName sets v to the index of the row with a name.
func parseName[T ~uint8, R any, P interface {
	*R
	row() *Row
}](v *T, b []byte, rows []R, what string) error {
	names := make([]string, len(rows))
	for i := range rows {
		if names[i] = P(&rows[i]).row().Name; names[i] == string(b) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("diagnose: %s %q, want one of %s", what, b, strings.Join(names, ", "))
}
