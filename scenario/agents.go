package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Agents are hosts that request a diagnosis of their slow flows. The fields are
// those of agent.Config.
type Agents struct {
	Position          Position
	Hosts             []model.NodeID // nil: all
	RTTFactor         float64        // multiple of the base round-trip time
	RTTLimit          time.Duration  // absolute limit, instead of RTTFactor
	MinRepollInterval time.Duration
	CheckInterval     time.Duration // between two checks of unacknowledged packets
}

// DefaultAgents check ten times within the round-trip limit, and request
// diagnoses more often than agent.DefaultConfig does: runs are short.
func DefaultAgents() *Agents {
	return &Agents{
		RTTFactor: agent.DefaultConfig(0).RTTFactor, MinRepollInterval: time.Millisecond,
		CheckInterval: 5 * time.Microsecond,
	}
}

type agentsSpec struct {
	sourcePos
	Hosts             []ref         `yaml:"hosts"` // default: all
	RTTFactor         float64       `yaml:"rtt-factor"`
	RTTLimit          time.Duration `yaml:"rtt-limit"`
	MinRepollInterval time.Duration `yaml:"min-repoll-interval"`
	CheckInterval     time.Duration `yaml:"check-interval"`
}

func defaultAgents() agentsSpec {
	d := DefaultAgents()
	return agentsSpec{RTTFactor: d.RTTFactor, MinRepollInterval: d.MinRepollInterval, CheckInterval: d.CheckInterval}
}

func (sc *schema) resolveAgents(s *Scenario, e *env) (err error) {
	if !sc.has("agents") {
		return nil
	}
	spec := &sc.Agents
	s.Agents = &Agents{
		Position: spec.Position, RTTFactor: spec.RTTFactor, RTTLimit: spec.RTTLimit,
		MinRepollInterval: spec.MinRepollInterval, CheckInterval: spec.CheckInterval,
	}
	check := s.Agents.ConfigFor(0)
	if err := check.Check(); err != nil {
		return spec.errorf("", "%s", trimPackageNames(err))
	}
	if spec.CheckInterval <= 0 {
		return spec.errorf("check-interval", "check-interval %v, want above 0", spec.CheckInterval)
	}
	for _, r := range spec.Hosts {
		for _, one := range e.expand(r) {
			h, err := e.host(one)
			if err != nil {
				return err
			}
			s.Agents.Hosts = append(s.Agents.Hosts, h)
		}
	}
	if !slices.ContainsFunc(s.Telemetry, func(p Program) bool { return p.Kind == "epoch" }) {
		s.Telemetry = append(s.Telemetry, epochProgram(defaultEpoch().Length))
	}
	return nil
}

func (a *Agents) ConfigFor(host model.NodeID) agent.Config {
	c := agent.DefaultConfig(host)
	c.RTTFactor, c.RTTLimit, c.MinRepollInterval = a.RTTFactor, a.RTTLimit, a.MinRepollInterval
	return c
}

// diagnosis matches diagnosis requests with reports.
type diagnosis struct {
	x         *session
	agents    *simhost.Agents
	diagnoser *rootcause.Diagnoser
	lists     []dta.ListID // of epoch telemetry
	mgmt      *simhost.Management
	verdicts  []diagnose.Verdict
	refused   uint64 // malformed reports
}

// startAgents starts the agents.
func (x *session) startAgents(Options) error {
	a := x.s.Agents
	if a == nil {
		return nil
	}
	c := &diagnosis{x: x}
	cfg := rootcause.DefaultConfig(x.net.Intent())
	cfg.MaxRequests = 1 << 16
	cfg.Repoll = func(_ model.Time, who diagnose.Detection) { c.agents.PollFlow(who.Victim) }
	var err error
	if c.diagnoser, err = rootcause.New(cfg); err != nil {
		return err
	}
	hosts := a.Hosts
	if hosts == nil {
		hosts = x.fabric.Hosts()
	}
	var configs []agent.Config
	for _, h := range hosts {
		configs = append(configs, a.ConfigFor(h))
	}
	if c.agents, err = simhost.NewAgents(x.net, a.CheckInterval, configs, c.addRequest); err != nil {
		return wrap(a.Position, "agents", err)
	}
	for i := range x.s.Telemetry {
		if x.s.Telemetry[i].Kind == "epoch" {
			c.lists = append(c.lists, x.s.FirstList(i))
		}
	}
	x.diagnosis = c
	return nil
}

// addRequest adds an agent's diagnosis request.
func (c *diagnosis) addRequest(at model.Time, t agent.DiagnosisRequest) {
	src, known := c.x.fabric.ByAddr(t.Poll.Flow.Src)
	stopped := known && simhost.FlowPortPaused(c.x.net.Host(src), t.Poll.Flow)
	who := diagnose.Detection{
		Event: t.Poll.Event, Victim: t.Poll.Flow, HostPaused: stopped,
		Latency: t.Latency(), InFlight: t.Reason == agent.Age, Window: t.Window(),
	}
	_ = c.diagnoser.AddRequest(c.x.clock(c.x.net.Now()), rootcause.DiagnosisRequest{Detection: who, At: at}) // requests beyond the limit are counted
}

// tapReports returns a sink that passes reports to the diagnoser, and
// everything to the given sink.
func (c *diagnosis) tapReports(sink simhost.Sink) simhost.Sink {
	var in dta.Reader
	var rep dta.Report
	return func(at model.Time, from model.NodeID, datagram []byte) {
		sink(at, from, datagram)
		if in.Reset(datagram) != nil {
			c.refused++
			return
		}
		for in.Next(&rep) {
			if rep.Primitive != dta.Append || !slices.Contains(c.lists, rep.List) {
				continue
			}
			verdicts, err := c.diagnoser.AddReport(at+c.x.s.Base, rep.Data)
			if err != nil {
				c.refused++
			}
			c.verdicts = append(c.verdicts, verdicts...)
		}
	}
}

// finishDiagnosis stops the agents after the run, and delivers the reports they
// requested: switch CPUs take longer than most runs.
func (x *session) finishDiagnosis() {
	if x.diagnosis == nil {
		return
	}
	x.diagnosis.agents.Stop()
	if x.diagnosis.mgmt != nil {
		x.diagnosis.mgmt.Drain(x.hosts)
	}
	x.diagnosis.verdicts = append(x.diagnosis.verdicts, x.diagnosis.diagnoser.Flush()...)
}

// DiagnosisRequests counts the agents' diagnosis requests and their outcome.
type DiagnosisRequests struct {
	Sent            uint64 `json:"sent"`
	Unanswered      uint64 `json:"unanswered"`       // no report arrived
	RejectedReports uint64 `json:"rejected_reports"` // malformed reports

	Polling, Collection time.Duration `json:"-"` // of the slowest
}

// diagnoses returns the verdicts, by name.
func (x *session) diagnoses() (list []diagnose.VerdictView, _ *DiagnosisRequests) {
	list = []diagnose.VerdictView{}
	c := x.diagnosis
	if c == nil {
		return list, nil
	}
	st := c.diagnoser.Stats()
	sum := &DiagnosisRequests{Sent: st.Requests, Unanswered: st.Unanswered, RejectedReports: c.refused}
	for i := range c.verdicts {
		t := &c.verdicts[i].Times
		sum.Polling, sum.Collection = max(sum.Polling, t.Polling), max(sum.Collection, t.Collection)
	}
	for _, v := range diagnose.Merge(c.verdicts) {
		list = append(list, v.View(x.fabric))
	}
	return list, sum
}

// String returns one line.
func (c *DiagnosisRequests) String() string {
	text := fmt.Sprintf("%s, %d unanswered; at most %v from detection to the snapshots and %v from there to the last report",
		plural.Count(c.Sent, "diagnosis request"), c.Unanswered,
		model.FormatDuration(c.Polling), model.FormatDuration(c.Collection))
	if c.RejectedReports > 0 {
		text += fmt.Sprintf("; %s rejected", plural.Count(c.RejectedReports, "report"))
	}
	return text
}
