package congestion

import (
	"slices"
	"strings"
)

// None is the name of no congestion control: flows send at line rate. Its
// Params are nil.
const None = "none"

// Algorithm is a row of the table: a congestion control that can be chosen by
// name.
type Algorithm struct {
	Name string
	// Presets are named sets of constants, the default first.
	Presets []Preset
}

// Preset is a named set of constants.
type Preset struct {
	Name string
	New  func() Params
}

// algorithms is the table. The first row is the default of an RDMA fabric.
var algorithms = []Algorithm{
	{"dcqcn", []Preset{
		{"paper", func() Params { return PaperDCQCN() }},
		{"hpcc", func() Params { return HPCCSimDCQCN() }},
	}},
	{"hpcc", []Preset{{"hpcc", func() Params { return DefaultHPCC() }}}},
	{"timely", []Preset{{"hpcc", func() Params { return DefaultTIMELY() }}}},
	{"dctcp", []Preset{{"hpcc", func() Params { return DefaultDCTCP() }}}},
	{"swift", []Preset{{"paper", func() Params { return DefaultSwift() }}}},
	{None, []Preset{{"", func() Params { return nil }}}},
}

// Algorithms returns the rows of the table.
func Algorithms() []Algorithm { return slices.Clone(algorithms) }

// Find returns the algorithm of a name.
func Find(name string) (Algorithm, bool) {
	for _, a := range algorithms {
		if strings.EqualFold(a.Name, name) {
			return a, true
		}
	}
	return Algorithm{}, false
}

// Names lists the algorithms: "dcqcn, hpcc, timely, dctcp, swift or none".
func Names() string {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.Name
	}
	return list(names)
}

// Default returns the algorithm's constants unless a scenario names others.
func (a Algorithm) Default() Params { return a.Presets[0].New() }

// Preset returns the constants of a name.
func (a Algorithm) Preset(name string) (Params, bool) {
	for _, p := range a.Presets {
		if strings.EqualFold(p.Name, name) {
			return p.New(), true
		}
	}
	return nil, false
}

// PresetNames lists the algorithm's presets: "paper or hpcc".
func (a Algorithm) PresetNames() string {
	names := make([]string, len(a.Presets))
	for i, p := range a.Presets {
		names[i] = p.Name
	}
	return list(names)
}

// list joins names as a sentence has them.
func list(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// TraitsOf returns the traits of constants, those of None for nil.
func TraitsOf(p Params) Traits {
	if p == nil {
		return Traits{Name: None}
	}
	return p.Traits()
}
