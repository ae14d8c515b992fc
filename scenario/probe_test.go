package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/sim/engine"
)

func TestProbe(t *testing.T) {
	for _, f := range strings.Fields(os.Getenv("PROBE")) {
		s, err := Read(f)
		if err != nil {
			t.Fatal(err)
		}
		if s.Agents == nil {
			s.Agents = DefaultAgents()
			s.Telemetry = append(s.Telemetry, epochProgram(defaultEpoch().Length))
			s.Management.Delay = 100000
		}
		r, err := Run(context.Background(), s, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("==", f, r.Complaints, r.Telemetry)
		for _, d := range r.Diagnoses {
			fmt.Printf("  %v/%v/%v conf %.2f standing %v switches %d bytes %d\n    %s\n", d.Anomaly, d.Cause, d.Detail, d.Confidence, d.Standing, d.Switches, d.Telemetry, d.Sentence())
			for _, e := range d.Evidence {
				fmt.Println("      -", e)
			}
			fmt.Println("      path", d.Path, "loop", d.Loop, "culprits", d.Culprits, "victims", len(d.Victims), "fault", d.Fault)
		}
	}
}

func TestProbeAll(t *testing.T) {
	for _, f := range strings.Fields(os.Getenv("PROBEALL")) {
		s, err := Read(f)
		if err != nil {
			t.Fatal(err)
		}
		if s.Agents == nil {
			s.Agents = DefaultAgents()
			s.Telemetry = append(s.Telemetry, epochProgram(defaultEpoch().Length))
			s.Management.Delay = 100000
		}
		x, err := assemble(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		x.net.Run(timeOf(0) + engine.Of(s.Duration))
		x.settle()
		for _, v := range x.clinic.verdicts {
			d := v.Named(x.fabric)
			fmt.Printf("  %v at %v: %v/%v/%v conf %.2f standing %v: %s %v\n", v.Event, v.At, d.Anomaly, d.Cause, d.Detail, d.Confidence, d.Standing, d.Sentence(), d.Evidence)
		}
	}
}
