package scenario

import (
	"cmp"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// trafficSpec is one item of the section traffic.
type trafficSpec interface {
	// generator returns the generator, with names resolved. A duration or stop
	// at 0 means: to the end of the run.
	generator(e *env) (traffic.Generator, error)
	named() string
	from() *sourcePos
}

// env is what specs are resolved with.
type env struct {
	names
	load  loader
	notes []string // what a reader of the result must know
}

// trafficKinds returns specs with their defaults.
var trafficKinds = map[string]func() trafficSpec{
	"poisson": func() trafficSpec {
		d := traffic.DefaultPoisson()
		return &poissonSpec{class: classOf(d.Class), Load: share(d.Load)}
	},
	"permutation": func() trafficSpec {
		d := traffic.DefaultPermutation()
		return &permutationSpec{class: classOf(d.Class), Bytes: d.Bytes}
	},
	"incast": func() trafficSpec {
		d := traffic.DefaultIncast()
		return &incastSpec{class: classOf(d.Class), Fanin: d.Fanin, Bytes: d.Bytes, Rounds: d.Rounds, Period: d.Period}
	},
	"query": func() trafficSpec {
		d := traffic.DefaultQuery()
		return &querySpec{class: classOf(d.Class), Fanout: d.Fanout, Request: d.Request, Response: d.Response, Gap: d.Gap}
	},
	"persistent": func() trafficSpec {
		return &persistentSpec{class: classOf(traffic.DefaultPersistent().Class)}
	},
	"shrew": func() trafficSpec {
		d := traffic.DefaultShrew()
		return &shrewSpec{class: classOf(d.Class), Burst: d.Burst, Period: d.Period, Rounds: d.Rounds}
	},
	"all-reduce": func() trafficSpec { return &allReduceSpec{job: defaultJob()} },
	"all-to-all": func() trafficSpec { return &allToAllSpec{job: defaultJob()} },
	"collective": func() trafficSpec { return defaultCollective() },
	"pipeline":   func() trafficSpec { return defaultPipeline() },
	"flows":      func() trafficSpec { return &flowsSpec{} },
	"flow-file":  func() trafficSpec { return &flowFileSpec{} },
	"chakra":     func() trafficSpec { return &workloadSpec{} },
	"goal":       func() trafficSpec { return &workloadSpec{} },
	"htsim":      func() trafficSpec { return &workloadSpec{} },
	"simai":      func() trafficSpec { return &simaiSpec{PerServer: 1} },
}

// trafficHeader is what all items have in common.
type trafficHeader struct {
	sourcePos
	Kind string `yaml:"kind"`
	Name string `yaml:"name"` // in results; default: the kind
}

func (h *trafficHeader) named() string { return cmp.Or(h.Name, h.Kind) }

// class is what all flows of an item have in common.
type class struct {
	Priority  model.Priority    `yaml:"priority"`
	Transport traffic.Transport `yaml:"transport"`
	Port      uint16            `yaml:"port"` // of the destination
	IPv6      bool              `yaml:"ipv6"`
	Rate      model.Rate        `yaml:"rate"`
	CC        bool              `yaml:"congestion-control"`
}

func classOf(c traffic.Class) class {
	return class{Priority: c.Priority, Transport: c.Transport, Port: c.DstPort, IPv6: c.V6, Rate: c.Rate, CC: !c.NoCC}
}

func (c *class) class() traffic.Class {
	return traffic.Class{
		Priority: c.Priority, Transport: c.Transport, DstPort: c.Port, V6: c.IPv6, Rate: c.Rate,
		NoCC: !c.CC,
	}
}

type poissonSpec struct {
	trafficHeader
	class
	Hosts    []ref         `yaml:"hosts"`
	Sizes    ref           `yaml:"sizes"` // a distribution of sim/traffic, or a file
	Load     share         `yaml:"load"`
	Start    model.Time    `yaml:"start"`
	Duration time.Duration `yaml:"duration"`
}

func (s *poissonSpec) generator(e *env) (traffic.Generator, error) {
	g := traffic.DefaultPoisson()
	g.Class, g.Load, g.Start, g.Duration = s.class.class(), float64(s.Load), s.Start, s.Duration
	var err error
	if s.Sizes.given() {
		if g.Sizes, err = e.sizes(s.Sizes); err != nil {
			return nil, err
		}
	}
	g.Hosts, err = e.hosts(s.Hosts)
	return g, err
}

func (e *env) sizes(r ref) (*traffic.CDF, error) {
	c, err := traffic.Sizes(r.text)
	if err == nil || !strings.ContainsAny(r.text, "./") {
		if err != nil {
			return nil, r.Errorf("%v, or a file", err)
		}
		return c, nil
	}
	path := relativeTo(r.File, r.text)
	data, err := e.load(path)
	if err != nil {
		return nil, r.Errorf("sizes: %v, want a file or one of %s", err, strings.Join(traffic.SizesNames(), ", "))
	}
	return traffic.ParseCDF(path, data)
}

type permutationSpec struct {
	trafficHeader
	class
	Hosts []ref       `yaml:"hosts"`
	Bytes model.Bytes `yaml:"bytes"`
	Start model.Time  `yaml:"start"`
	Stop  model.Time  `yaml:"stop"` // instead of bytes
}

func (s *permutationSpec) generator(e *env) (traffic.Generator, error) {
	hosts, err := e.hosts(s.Hosts)
	g := traffic.Permutation{Class: s.class.class(), Hosts: hosts, Bytes: s.Bytes, Start: s.Start, Stop: s.Stop}
	if s.has("stop") && !s.has("bytes") {
		g.Bytes = 0
	}
	return g, err
}

type incastSpec struct {
	trafficHeader
	class
	Receivers []ref         `yaml:"receivers"`
	Senders   []ref         `yaml:"senders"`
	Fanin     int           `yaml:"fanin"`
	Bytes     model.Bytes   `yaml:"bytes"` // from each sender
	Start     model.Time    `yaml:"start"`
	Jitter    time.Duration `yaml:"jitter"`
	Rounds    int           `yaml:"rounds"`
	Period    time.Duration `yaml:"period"`
}

func (s *incastSpec) generator(e *env) (traffic.Generator, error) {
	g := traffic.Incast{
		Class: s.class.class(), Fanin: s.Fanin, Bytes: s.Bytes,
		Start: s.Start, Jitter: s.Jitter, Rounds: s.Rounds, Period: s.Period,
	}
	var err1, err2 error
	g.Receivers, err1 = e.hosts(s.Receivers)
	g.Senders, err2 = e.hosts(s.Senders)
	if len(g.Senders) > 0 && !s.has("fanin") {
		g.Fanin = 0 // default: all that are named
	}
	return g, cmp.Or(err1, err2)
}

type querySpec struct {
	trafficHeader
	class
	Hosts    []ref         `yaml:"hosts"`
	Fanout   int           `yaml:"fanout"`
	Request  model.Bytes   `yaml:"request"`
	Response model.Bytes   `yaml:"response"`
	Think    time.Duration `yaml:"think"`
	Gap      time.Duration `yaml:"gap"`
	Start    model.Time    `yaml:"start"`
	Duration time.Duration `yaml:"duration"`
}

func (s *querySpec) generator(e *env) (traffic.Generator, error) {
	hosts, err := e.hosts(s.Hosts)
	return traffic.Query{
		Class: s.class.class(), Hosts: hosts, Fanout: s.Fanout, Request: s.Request, Response: s.Response,
		Think: s.Think, Gap: s.Gap, Start: s.Start, Duration: s.Duration,
	}, err
}

type persistentSpec struct {
	trafficHeader
	class
	Pairs []ref      `yaml:"pairs"` // "h0>h1"
	Start model.Time `yaml:"start"`
	Stop  model.Time `yaml:"stop"`
}

func (s *persistentSpec) generator(e *env) (traffic.Generator, error) {
	g := traffic.Persistent{Class: s.class.class(), Start: s.Start, Stop: s.Stop}
	for _, r := range s.Pairs {
		p, err := e.pair(r)
		if err != nil {
			return nil, err
		}
		g.Pairs = append(g.Pairs, p)
	}
	return g, nil
}

func (e *env) pair(r ref) (p traffic.Pair, err error) {
	from, to, ok := strings.Cut(r.text, ">")
	if !ok {
		return p, r.Errorf("pair %q, want two hosts such as h0>h1", r.text)
	}
	if p.Src, err = e.host(ref{r.Position, strings.TrimSpace(from)}); err != nil {
		return p, err
	}
	p.Dst, err = e.host(ref{r.Position, strings.TrimSpace(to)})
	return p, err
}

type shrewSpec struct {
	trafficHeader
	class
	Senders  []ref         `yaml:"senders"`
	Receiver ref           `yaml:"receiver"`
	Burst    time.Duration `yaml:"burst"`
	Period   time.Duration `yaml:"period"`
	Rounds   int           `yaml:"rounds"`
	Start    model.Time    `yaml:"start"`
}

func (s *shrewSpec) generator(e *env) (traffic.Generator, error) {
	g := traffic.Shrew{Class: s.class.class(), Burst: s.Burst, Period: s.Period, Rounds: s.Rounds, Start: s.Start}
	if !s.Receiver.given() {
		return nil, s.errorf("", "shrew has no receiver, want a host")
	}
	var err1, err2 error
	g.Senders, err1 = e.hosts(s.Senders)
	g.Receiver, err2 = e.host(s.Receiver)
	return g, cmp.Or(err1, err2)
}

// job is what collectives have in common.
type job struct {
	trafficHeader
	class
	Hosts      []ref         `yaml:"hosts"` // in rank order
	Bytes      model.Bytes   `yaml:"bytes"` // of each host
	Start      model.Time    `yaml:"start"`
	Iterations int           `yaml:"iterations"`
	Compute    time.Duration `yaml:"compute"`
}

func defaultJob() job {
	d := traffic.DefaultJob()
	return job{class: classOf(d.Class), Bytes: d.Bytes, Iterations: d.Iterations, Compute: d.Compute}
}

func (j *job) job(e *env) (traffic.Job, error) {
	hosts, err := e.hosts(j.Hosts)
	return traffic.Job{
		Class: j.class.class(), Hosts: hosts, Bytes: j.Bytes, Start: j.Start, Iterations: j.Iterations, Compute: j.Compute,
	}, err
}

type allReduceSpec struct{ job }

func (s *allReduceSpec) generator(e *env) (traffic.Generator, error) {
	j, err := s.job.job(e)
	return traffic.RingAllReduce{Job: j}, err
}

type allToAllSpec struct {
	job
	Window int `yaml:"window"`
}

func (s *allToAllSpec) generator(e *env) (traffic.Generator, error) {
	j, err := s.job.job(e)
	return traffic.AllToAll{Job: j, Window: s.Window}, err
}

// trafficItem decodes one item by its kind.
type trafficItem struct{ trafficSpec }

func (p *trafficItem) decode(v tree.Value, what string) (err error) {
	p.trafficSpec, err = decodeByKind(v, what, trafficKinds)
	return err
}

// untilEnd makes generators without an end run to the end of the run.
func untilEnd(g traffic.Generator, end model.Time) traffic.Generator {
	switch g := g.(type) {
	case traffic.Poisson:
		if g.Duration == 0 {
			g.Duration = end.Sub(g.Start)
		}
		return g
	case traffic.Query:
		if g.Duration == 0 {
			g.Duration = end.Sub(g.Start)
		}
		return g
	case traffic.Persistent:
		if g.Stop == 0 {
			g.Stop = end
		}
		return g
	}
	return g
}
