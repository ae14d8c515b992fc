package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// Expectation is a condition that must hold after a run.
type Expectation struct {
	Position Position
	Group    string // of traffic, by name; empty: the whole run
	Figure   string // such as "drops"; docs/scenarios.md lists them
	Want     Condition
}

// what returns the figure's name for people.
func (e *Expectation) what() string {
	if e.Group == "" {
		return e.Figure
	}
	return e.Figure + " of " + e.Group
}

// Condition is a range of numbers, in the form of files: "0", "> 0", "at most
// 5", "1 to 3", "all".
type Condition struct {
	Text      string
	low, high float64 // both included
	share     bool    // of all flows
}

// unit is how the numbers of a figure are written.
type unit uint8

const (
	count unit = iota
	ratio
	size
	speed
	span
)

// figure is a number that a run is judged by.
type figure struct {
	unit   unit
	groups bool                  // also defined for a group of flows
	words  map[string][2]float64 // and the range of each
}

var someOrNone = map[string][2]float64{"none": {0, 0}, "some": {1, math.Inf(1)}}

// figures are all numbers that a run can be judged by.
var figures = withReasons(map[string]figure{
	"drops":             {words: someOrNone},
	"lossless-drops":    {words: someOrNone},
	"pauses":            {words: someOrNone},
	"pauses-to-hosts":   {words: someOrNone},
	"pauses-by-hosts":   {words: someOrNone},
	"marked":            {words: someOrNone},
	"trimmed":           {words: someOrNone},
	"reordered":         {words: someOrNone},
	"duplicates":        {words: someOrNone},
	"reports":           {words: someOrNone},
	"reports-delivered": {words: someOrNone},
	"reports-lost":      {words: someOrNone},
	"deadlock": {words: map[string][2]float64{
		"none": {0, 0}, "formed": {1, 2}, "dissolved": {1, 1},
		"persistent": {2, 2},
	}},
	"queue-peak":    {unit: size},
	"flows":         {groups: true},
	"finished":      {groups: true, words: someOrNone},
	"retransmitted": {groups: true, words: someOrNone},
	"goodput":       {groups: true, unit: speed},
	"completion":    {groups: true, unit: span},
	"slowdown-mean": {groups: true, unit: ratio},
	"slowdown-p50":  {groups: true, unit: ratio},
	"slowdown-p95":  {groups: true, unit: ratio},
	"slowdown-p99":  {groups: true, unit: ratio},
	"slowdown-max":  {groups: true, unit: ratio},
})

// withReasons adds the drops of each reason.
func withReasons(all map[string]figure) map[string]figure {
	for r := range len(sim.Counts{}.Drops) {
		all["drops-"+sim.Reason(r).String()] = figure{words: someOrNone}
	}
	return all
}

// figureNames lists the figures of a run, or of a group.
func figureNames(group bool) (list []string) {
	for name, f := range figures {
		if f.groups || !group {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// expectSpec is the section expect: figures and conditions, and under groups
// the same by traffic name.
type expectSpec struct {
	list      []Expectation
	diagnoses diagnosesSpec
	traces    findingsSpec
}

func (p *expectSpec) decode(v tree.Value, what string) error {
	list, err := v.Entries(what)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Key == "traces" {
			if err := p.traces.decode(e.Value, e.Key); err != nil {
				return err
			}
			continue
		}
		if e.Key == "diagnoses" {
			if err := p.diagnoses.decode(e.Value, e.Key); err != nil {
				return err
			}
			continue
		}
		if e.Key != "groups" {
			if err := p.addExpectation(e, ""); err != nil {
				return err
			}
			continue
		}
		groups, err := e.Entries("groups")
		if err != nil {
			return err
		}
		for _, g := range groups {
			of, err := g.Entries("group " + g.Key)
			if err != nil {
				return err
			}
			for _, e := range of {
				if err := p.addExpectation(e, g.Key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *expectSpec) addExpectation(e tree.Entry, group string) error {
	f, ok := figures[e.Key]
	if !ok || group != "" && !f.groups {
		return e.KeyPosition().Errorf("expectation of %q, want one of %s", e.Key,
			strings.Join(figureNames(group != ""), ", "))
	}
	text, err := e.Text(e.Key)
	if err != nil {
		return err
	}
	c, err := f.condition(e.Key, strings.TrimSpace(text))
	if err != nil {
		return e.Errorf("%s %q, want %v", e.Key, text, err)
	}
	p.list = append(p.list, Expectation{Position: e.Position, Group: group, Figure: e.Key, Want: c})
	return nil
}

// condition parses the condition of a figure. Its error says what it wants.
func (f *figure) condition(name, text string) (c Condition, err error) {
	c = Condition{Text: text, low: math.Inf(-1), high: math.Inf(1)}
	if r, ok := f.words[text]; ok {
		c.low, c.high = r[0], r[1]
		return c, nil
	}
	if name == "finished" && text == "all" {
		c.low, c.share = 1, true
		return c, nil
	}
	if name == "deadlock" {
		return c, fmt.Errorf("none, formed, dissolved or persistent")
	}
	number := func(s string) float64 {
		v, share, bad := f.number(name, strings.TrimSpace(s))
		if bad != nil {
			err = bad
		}
		c.share = c.share || share
		return v
	}
	op, rest := operator(text)
	switch op {
	case "<":
		c.high = math.Nextafter(number(rest), math.Inf(-1))
	case "<=":
		c.high = number(rest)
	case ">":
		c.low = math.Nextafter(number(rest), math.Inf(1))
	case ">=":
		c.low = number(rest)
	case "=":
		c.low = number(rest)
		c.high = c.low
	}
	if low, high, ok := strings.Cut(rest, " to "); ok && op == "=" {
		err = nil
		c.low, c.high = number(low), number(high)
	}
	return c, err
}

// operators by their forms, the longer of two with the same prefix first. In
// YAML a plain ">" has another meaning: hence the words.
var operators = []struct{ written, means string }{
	{"at least ", ">="},
	{"at most ", "<="},
	{"above ", ">"},
	{"below ", "<"},
	{"exactly ", "="},
	{">=", ">="},
	{"<=", "<="},
	{">", ">"},
	{"<", "<"},
	{"==", "="},
	{"=", "="},
}

func operator(text string) (op, rest string) {
	for _, o := range operators {
		if rest, ok := strings.CutPrefix(text, o.written); ok {
			return o.means, strings.TrimSpace(rest)
		}
	}
	return "=", text
}

// number reads a number in the figure's unit.
func (f *figure) number(name, s string) (v float64, share bool, err error) {
	switch f.unit {
	case size:
		n, err := model.ParseBytes(s)
		return float64(n), false, orWant(err, "a size such as 500KB")
	case speed:
		n, err := model.ParseRate(s)
		return float64(n), false, orWant(err, "a rate such as 25Gb/s")
	case span:
		d, err := parseSpan(s)
		return float64(d), false, orWant(err, "a duration such as 10us")
	}
	if name == "finished" && strings.HasSuffix(s, "%") {
		p, err := parseShare(s)
		return p, true, orWant(err, "0% to 100%")
	}
	v, err = parseNumber(s)
	return v, false, orWant(err, "a number such as 0, above 0, at most 5, 1 to 3")
}

func orWant(err error, want string) error {
	if err != nil {
		return fmt.Errorf("%s", want)
	}
	return nil
}

// holds reports whether a value, among that many flows, meets the condition.
func (c *Condition) holds(v, flows float64) bool {
	if c.share {
		if flows == 0 {
			return false
		}
		v /= flows
	}
	return v >= c.low && v <= c.high
}

// show prints a value of the figure.
func (f *figure) show(name string, v float64) string {
	switch f.unit {
	case ratio:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case size:
		return model.FormatBytes(model.Bytes(v))
	case speed:
		return model.FormatRate(model.Rate(v))
	case span:
		return model.FormatDuration(time.Duration(v))
	}
	if name == "deadlock" {
		return [...]string{"none", "dissolved", "persistent"}[int(v)]
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
