package topo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Spec describes a generated fabric by kind and parameters, as a file or a
// command line does.
type Spec struct {
	Kind   string            // name of one of Kinds
	Name   string            // of the fabric; empty: the generator's default
	Params map[string]string // missing ones have their defaults
}

// Kind is a generator of fabrics.
type Kind struct {
	Name   string
	About  string
	Params []Param // specific ones first, then those of all kinds
	build  func(p params) (*Fabric, error)
}

// Param is a parameter of a generator.
type Param struct {
	Name    string
	Default string // empty: as About says
	About   string
}

// linkParams are understood by every kind.
var linkParams = []Param{
	{"rate", "100Gb/s", "rate of all links"},
	{"delay", "1µs", "propagation delay of all links"},
	{"error-rate", "0", "probability that a link loses a packet, 0 to 1"},
	{"host-rate", "", "rate of links to hosts, where it differs from rate"},
	{"host-delay", "", "delay of links to hosts, where it differs from delay"},
}

var kinds = []Kind{
	{
		Name: "fat-tree", About: "k-ary fat-tree: k pods, k³/4 hosts, 5k²/4 switches",
		Params: []Param{{"k", "4", "ports of every switch, even, 2 to 64"}},
		build:  func(p params) (*Fabric, error) { return FatTree(p.int("k"), p.links) },
	},
	{
		Name: "leaf-spine", About: "every leaf connected to every spine",
		Params: []Param{
			{"leaves", "4", "leaf switches"},
			{"spines", "2", "spine switches"},
			{"hosts", "4", "hosts below each leaf, 0 to 253"},
		},
		build: func(p params) (*Fabric, error) {
			return LeafSpine(p.int("leaves"), p.int("spines"), p.int("hosts"), p.links)
		},
	},
	{
		Name: "clos", About: "three tiers in pods; by default INT-label's: 4 spines, 4 leaves, 4 ToRs, 8 hosts",
		Params: []Param{
			{"pods", strconv.Itoa(DefaultClos().Pods), "pods"},
			{"tors", strconv.Itoa(DefaultClos().ToRs), "ToR switches in each pod"},
			{"leaves", strconv.Itoa(DefaultClos().Leaves), "leaf switches in each pod"},
			{"spines", strconv.Itoa(DefaultClos().Spines), "spine switches that each leaf reaches"},
			{"hosts", strconv.Itoa(DefaultClos().Hosts), "hosts below each ToR, 0 to 253"},
		},
		build: func(p params) (*Fabric, error) {
			return Clos(ClosSize{
				Pods: p.int("pods"), ToRs: p.int("tors"), Leaves: p.int("leaves"),
				Spines: p.int("spines"), Hosts: p.int("hosts"),
			}, p.links)
		},
	},
	{
		Name: "dumbbell", About: "two switches, one bottleneck link, hosts on both sides",
		Params: []Param{{"hosts", "4", "hosts on each side, 1 to 253"}},
		build:  func(p params) (*Fabric, error) { return Dumbbell(p.int("hosts"), p.links) },
	},
	{
		Name: "ring", About: "switches in a ring, each with hosts",
		Params: []Param{
			{"switches", "4", "switches, 3 to 4096"},
			{"hosts", "1", "hosts on each switch, 0 to 253"},
		},
		build: func(p params) (*Fabric, error) { return Ring(p.int("switches"), p.int("hosts"), p.links) },
	},
}

// Kinds returns the generators and their parameters, for help texts.
func Kinds() []Kind {
	out := slices.Clone(kinds)
	for i := range out {
		out[i].Params = slices.Concat(out[i].Params, linkParams)
	}
	return out
}

// Generate makes the fabric that s describes. Its errors are *ParamErrors.
func Generate(s Spec) (*Fabric, error) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == s.Kind })
	if i < 0 {
		names := make([]string, len(kinds))
		for i := range kinds {
			names[i] = kinds[i].Name
		}
		return nil, &ParamError{"kind", fmt.Sprintf("kind %q, want one of %s", s.Kind, strings.Join(names, ", "))}
	}
	p, err := readParams(kinds[i].Params, s.Params)
	if err != nil {
		return nil, err
	}
	if err := checkFabricName(s.Name); err != nil {
		return nil, &ParamError{"name", err.Error()}
	}
	f, err := kinds[i].build(p)
	if err != nil {
		return nil, err
	}
	if s.Name != "" {
		f.name = s.Name
	}
	return f, nil
}

// params are a generator's parameters, read and complete.
type params struct {
	ints  map[string]int
	links Links
}

func (p params) int(name string) int { return p.ints[name] }

func readParams(own []Param, given map[string]string) (params, error) {
	p := params{ints: make(map[string]int), links: DefaultLinks()}
	known := slices.Concat(own, linkParams)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(known, func(k Param) bool { return k.Name == name }) {
			names := make([]string, len(known))
			for i := range known {
				names[i] = known[i].Name
			}
			return p, &ParamError{name, fmt.Sprintf("unknown parameter %q, want one of %s", name, strings.Join(names, ", "))}
		}
	}
	for _, k := range own {
		v, ok := given[k.Name]
		if !ok {
			v = k.Default
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			return p, &ParamError{k.Name, fmt.Sprintf("%s %q, want a whole number", k.Name, v)}
		}
		p.ints[k.Name] = n
	}
	// In this order, so that parameters of host links override those of all
	// links.
	for _, k := range linkParams {
		v, ok := given[k.Name]
		if !ok {
			continue
		}
		if err := p.links.setParam(k.Name, v); err != nil {
			return p, &ParamError{k.Name, fmt.Sprintf("parameter %s: %v", k.Name, err)}
		}
	}
	return p, nil
}

// setParam changes one of linkParams.
func (l *Links) setParam(name, v string) (err error) {
	switch name {
	case "rate":
		l.Fabric.Rate, err = model.ParseRate(v)
		l.Host.Rate = l.Fabric.Rate
	case "host-rate":
		l.Host.Rate, err = model.ParseRate(v)
	case "delay":
		l.Fabric.Delay, err = ParseDelay(v)
		l.Host.Delay = l.Fabric.Delay
	case "host-delay":
		l.Host.Delay, err = ParseDelay(v)
	case "error-rate":
		l.Fabric.ErrorRate, err = ParseErrorRate(v)
		l.Host.ErrorRate = l.Fabric.ErrorRate
	}
	if err != nil {
		return err
	}
	return firstError(l.Host.check(), l.Fabric.check())
}

// ParseDelay parses a propagation delay such as "600ns" or "1.5us".
func ParseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("delay %q, want a duration such as 600ns or 1us", s)
	}
	return d, nil
}

// ParseErrorRate parses a probability.
func ParseErrorRate(s string) (float64, error) {
	p, err := strconv.ParseFloat(s, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("error rate %q, want a number from 0 to 1", s)
	}
	return math.Abs(p), nil // -0 is 0
}
