package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// flowsetSpec runs inswitch/flowset, with tables sized for a number of flows.
type flowsetSpec struct {
	programHeader
	Slot    time.Duration `yaml:"slot"`
	Flows   int           `yaml:"flows"`  // in one slot of a switch, or of a port
	Target  share         `yaml:"target"` // share of the slots in which all of them are decoded
	Decode  string        `yaml:"decode"`
	PerPort bool          `yaml:"per-port"`
	IPv6    bool          `yaml:"ipv6"` // off: no table for it
	Bursts  int           `yaml:"bursts"`
	Cells   string        `yaml:"cells"` // wide, or narrow: without bytes
}

func defaultFlowset() *flowsetSpec {
	c := flowset.DefaultConfig()
	return &flowsetSpec{
		Slot: c.Slot, Flows: 10_000, Target: 0.99, Decode: flowset.Single.String(), PerPort: c.PerPort,
		IPv6: true, Bursts: c.Bursts, Cells: "wide",
	}
}

func (s *flowsetSpec) program(p *Program) error {
	mode := flowset.Single
	switch strings.ToLower(s.Decode) {
	case flowset.Single.String():
	case flowset.Net.String():
		mode = flowset.Net
	default:
		return fmt.Errorf("decode %q, want %v or %v", s.Decode, flowset.Single, flowset.Net)
	}
	size, err := flowset.Plan(s.Flows, float64(s.Target), mode)
	if err != nil {
		return err
	}
	cfg := flowset.DefaultConfig()
	cfg.Slot, cfg.PerPort, cfg.Bursts = s.Slot, s.PerPort, s.Bursts
	cfg.IPv4.Geometry, cfg.IPv6.Geometry = size.Geometry, size.Geometry
	switch s.Cells {
	case "wide":
	case "narrow":
		cfg.IPv4.Layout, cfg.IPv6.Layout = flowset.NarrowLayout4, flowset.NarrowLayout6
	default:
		return fmt.Errorf("cells %q, want wide or narrow", s.Cells)
	}
	if !s.IPv6 {
		cfg.IPv6 = flowset.Table{}
	}
	p.ListPerSwitch = true
	p.New = func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) {
		cfg := cfg
		cfg.Seed, cfg.List, cfg.ChunkBytes = g.Seed, g.List, g.MaxReportBytes
		return flowset.New(dev, cfg)
	}
	return cfg.Check()
}

// epochSpec runs inswitch/epoch, which answers polls.
type epochSpec struct {
	programHeader
	Length          time.Duration `yaml:"length"`
	Epochs          int           `yaml:"epochs"`
	Flows           int           `yaml:"flows"`
	Evicted         int           `yaml:"evicted"`
	ReadoutTime     time.Duration `yaml:"readout-time"` // default: what a switch CPU takes for that many epochs
	SnapshotReuse   time.Duration `yaml:"snapshot-reuse"`
	PollDedupWindow time.Duration `yaml:"poll-dedup-window"`
}

func defaultEpoch() *epochSpec {
	c := epoch.DefaultConfig()
	return &epochSpec{
		Length: c.EpochLength, Epochs: c.Epochs, Flows: c.FlowSlots, Evicted: c.MaxEvicted,
		ReadoutTime: c.ReadoutTime, SnapshotReuse: c.SnapshotReuse, PollDedupWindow: c.PollDedupWindow,
	}
}

func (s *epochSpec) program(p *Program) error {
	cfg := epoch.DefaultConfig()
	cfg.EpochLength, cfg.Epochs, cfg.FlowSlots, cfg.MaxEvicted = s.Length, s.Epochs, s.Flows, s.Evicted
	cfg.ReadoutTime, cfg.SnapshotReuse, cfg.PollDedupWindow = s.ReadoutTime, s.SnapshotReuse, s.PollDedupWindow
	if !s.has("readout-time") {
		cfg.ReadoutTime = epoch.ReadoutTimeFor(s.Epochs)
	}
	p.New = func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) {
		cfg := cfg
		cfg.Seed, cfg.List, cfg.ChunkBytes = g.Seed, g.List, min(cfg.ChunkBytes, g.MaxReportBytes)
		return epoch.New(cfg, dev)
	}
	return cfg.Check()
}

// epochProgram returns the telemetry that agents poll, in all switches, with an
// epoch length.
func epochProgram(length time.Duration) Program {
	spec := defaultEpoch()
	spec.Length = length
	p := Program{Kind: "epoch"}
	if err := spec.program(&p); err != nil {
		panic("scenario: defaults of epoch telemetry: " + err.Error())
	}
	return p
}

// labelSpec runs inswitch/label.
type labelSpec struct {
	programHeader
	Interval    time.Duration    `yaml:"interval"`
	MinInterval time.Duration    `yaml:"min-interval"`
	Probability labelProbability `yaml:"probability"`
	MaxHop      uint8            `yaml:"max-hop"`
}

func defaultLabels() *labelSpec {
	c := label.DefaultConfig()
	return &labelSpec{
		Interval: c.Interval, MinInterval: c.MinInterval,
		Probability: labelProbability{func(int) label.Probability { return c.Probability }}, MaxHop: c.MaxHop,
	}
}

func (s *labelSpec) program(p *Program) error {
	cfg := label.DefaultConfig()
	cfg.Interval, cfg.MinInterval, cfg.MaxHop = s.Interval, s.MinInterval, s.MaxHop
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg.Probability = s.Probability.build(int(s.MaxHop))
	p.New = func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) {
		cfg := cfg
		cfg.Seed, cfg.List = g.Seed, g.List
		return label.New(cfg, dev)
	}
	return nil
}

// labelProbability are "always", "linear", "timed" (the paper's F1, F2 and F3), or a
// list of shares for 0, 1, 2 … labels.
type labelProbability struct {
	build func(maxHop int) label.Probability
}

func (p *labelProbability) decode(v tree.Value, what string) error {
	if name, err := v.Text(what); err == nil {
		switch strings.ToLower(name) {
		case "always":
			p.build = func(int) label.Probability { return label.ProbabilityF1() }
		case "linear":
			p.build = label.ProbabilityF2
		case "timed":
			p.build = func(maxHop int) label.Probability { return label.GrowWithTime(label.ProbabilityF2(maxHop)) }
		default:
			return v.Errorf("%s %q, want always, linear, timed or a list of shares", what, name)
		}
		return nil
	}
	var shares []share
	if err := decode(v, &shares, what); err != nil {
		return err
	}
	list := make([]float64, len(shares))
	for i, s := range shares {
		list[i] = float64(s)
	}
	odds, err := label.ProbabilityTable(list...)
	if err != nil {
		return v.Errorf("%s: %s", what, trimPackageNames(err))
	}
	p.build = func(int) label.Probability { return odds }
	return nil
}
