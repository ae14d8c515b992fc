package preflight

import (
	"context"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
)

// Proof is a scenario that shows what a finding is about, and what its simulation
// gave.
type Proof struct {
	File   string `json:"file"`
	Holds  bool   `json:"holds"`  // the simulation shows it
	Result string `json:"result"` // what was wanted and what was found

	text string
}

// trial is a scenario to be simulated, in one or more forms: the first that shows
// the harm is the proof.
type trial struct {
	about    string
	duration time.Duration
	failure  topo.Failure
	faults   []string // lines of the section
	forms    [][]flow // traffic of each form
	storms   []bool   // by form: destinations send PAUSE for a while at first
	expect   string
	finish   bool // stop when all flows have finished
}

// flow is a flow of a trial.
type flow struct {
	src, dst  model.NodeID
	port      uint16
	bytes     model.Bytes // 0: to the end, at line rate and without congestion control
	congested bool        // with congestion control
}

// maxProofs bounds the proofs of one check; findings beyond say so.
const maxProofs = 64

// proveAll simulates the proof of each finding.
func (c *checker) proveAll(ctx context.Context) error {
	n := 0
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		if f.prove == nil {
			continue
		}
		if n++; n > maxProofs {
			f.Proof = &Proof{Result: fmt.Sprintf("not simulated: one check proves at most %d findings", maxProofs)}
			continue
		}
		t, err := f.prove()
		if err == nil {
			f.Proof, err = c.simulate(ctx, t, fmt.Sprintf("%02d-%s", n, f.Rule))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.Proof = &Proof{Result: "not simulated: " + err.Error()}
		}
	}
	return nil
}

// simulate runs the forms of a trial until one shows the harm.
func (c *checker) simulate(ctx context.Context, t *trial, name string) (*Proof, error) {
	var proof *Proof
	for i := range t.forms {
		text, err := c.scenarioText(t, i, name)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Parse(name+".yaml", []byte(text))
		if err != nil {
			return nil, err
		}
		r, err := scenario.Run(ctx, s, scenario.Options{}, nil)
		if err != nil {
			return nil, err
		}
		p := &Proof{File: name + ".yaml", Holds: r.Verdict == scenario.Pass, text: text}
		var got []string
		for _, j := range r.Expected {
			got = append(got, fmt.Sprintf("%s: %s (want %s)", j.What, j.Got, j.Want))
		}
		p.Result = strings.Join(got, ", ")
		if proof == nil || p.Holds {
			proof = p
		}
		if p.Holds {
			break
		}
	}
	return proof, nil
}

// WriteProofs writes the scenarios of all proofs to a directory.
func (r *Report) WriteProofs(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i := range r.Findings {
		p := r.Findings[i].Proof
		if p == nil || p.text == "" {
			continue
		}
		p.File = filepath.Join(dir, p.File)
		if err := os.WriteFile(p.File, []byte(p.text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// scenarioText writes one form of a trial as a scenario file.
func (c *checker) scenarioText(t *trial, form int, name string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Proof of a finding of weft check. Run it with weft run.\nname: %s\nabout: >\n  %s\nseed: %d\nduration: %v\n",
		name, t.about, c.s.Seed, t.duration)
	if t.finish {
		b.WriteString("stop-when-finished: on\n")
	}
	topology, err := scenario.TopologySection(c.s.Topology)
	if err != nil {
		return "", err
	}
	b.WriteString(topology + c.s.FabricSection())
	if !t.finish {
		b.WriteString("output: {deadlock-after: 500us}\n")
	}
	b.WriteString("traffic:\n  - kind: flows\n    name: proof\n    list:\n")
	var faults []string
	for _, l := range t.failure.Links {
		faults = append(faults, fmt.Sprintf("{kind: link-down, port: %q, reconverge: 0s}", c.fabric.PortRef(c.fabric.Links()[l].A)))
	}
	faults = append(faults, t.faults...)
	stormed := make(map[model.NodeID]bool)
	for _, f := range t.forms[form] {
		fmt.Fprintf(&b, "      - {from: %s, to: %s, source-port: %d, priority: %d", c.fabric.Node(f.src).Name, c.fabric.Node(f.dst).Name, f.port, c.priority())
		if f.bytes > 0 {
			fmt.Fprintf(&b, ", bytes: %d", f.bytes)
		} else {
			fmt.Fprintf(&b, ", stop: %v", t.duration)
		}
		if !f.congested {
			b.WriteString(", congestion-control: off")
		}
		b.WriteString("}\n")
		if len(t.storms) > form && t.storms[form] && !stormed[f.dst] {
			stormed[f.dst] = true
			faults = append(faults, fmt.Sprintf("{kind: storm, host: %s, priority: %d, at: 20us, for: 300us}", c.fabric.Node(f.dst).Name, c.priority()))
		}
	}
	if len(faults) > 0 {
		b.WriteString("faults:\n  - " + strings.Join(faults, "\n  - ") + "\n")
	}
	b.WriteString("expect: {" + t.expect + "}\n")
	return b.String(), nil
}

// priority returns the lowest lossless priority.
func (c *checker) priority() int {
	if c.s.Sim.HPCC || c.s.Sim.Lossless == 0 {
		return 3
	}
	return bits.TrailingZeros8(c.s.Sim.Lossless)
}
