package hawkeye

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/topo"
)

func TestScore(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	if n == 0 {
		t.Skip()
	}
	first, _ := strconv.Atoi(os.Getenv("SEED"))
	for _, k := range append(rows, quiet) {
		if s := os.Getenv("K"); s != "" && s != fmt.Sprint(int(k)) {
			continue
		}
		var verdicts, right, wrong, none, missed, traces, complaints, truths int
		for seed := range uint64(n) {
			lab := newLab().one(3, time.Millisecond)
			if os.Getenv("ALL") != "" {
				lab = newLab()
			}
			r, err := lab.play(t.Context(), uint64(first)+(seed+1)*10+uint64(k), 0, k)
			if err != nil {
				t.Fatal(err)
			}
			doctor, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(r.routes)))
			if err != nil {
				t.Fatal(err)
			}
			found := len(r.trace.causes) == 0
			for _, c := range r.complaints {
				complaints++
				e := r.collector.Evidence(c.event)
				g := provenance.Build(e, c.key, r.net.Fabric())
				answers := r.answers(c)
				if len(answers) > 0 {
					truths++
				}
				vs := doctor.Diagnose(diagnose.Complaint{Event: c.event, Victim: c.key, Paused: c.stopped}, e, g)
				for _, v := range vs {
					if v.Anomaly == diagnose.None {
						none++
						continue
					}
					verdicts++
					ok := false
					for _, a := range answers {
						if a.anomaly == v.Anomaly && a.root == v.Cause && a.port == v.Initial {
							ok = true
						}
					}
					for i := range r.trace.causes {
						cs := &r.trace.causes[i]
						if cs.anomaly == v.Anomaly && cs.root == v.Cause && len(cs.ports) > 0 && cs.ports[0] == v.Initial {
							found = true
						}
					}
					if ok {
						right++
						continue
					}
					wrong++
					if os.Getenv("V") != "" {
						nm := v.Named(r.net.Fabric())
						fmt.Printf("WRONG %v seed %d at %v took %v variant %d: %v/%v %v path %v loop %v: %q\n", k, seed, c.at.Duration(), c.took, c.variant, v.Anomaly, v.Cause, nm.Initial, nm.Path, nm.Loop, v.Evidence)
						for _, a := range answers {
							fmt.Printf("     true %v/%v %s\n", a.anomaly, a.root, r.net.Fabric().PortName(a.port))
						}
					}
				}
				if vs[0].Anomaly == diagnose.None && len(answers) > 0 && os.Getenv("V") == "2" {
					fmt.Printf("NONE %v seed %d at %v took %v variant %d: %q\n", k, seed, c.at.Duration(), c.took, c.variant, vs[0].Evidence)
					for _, a := range answers {
						fmt.Printf("     true %v/%v %s\n", a.anomaly, a.root, r.net.Fabric().PortName(a.port))
					}
				}
			}
			traces++
			if !found {
				missed++
				if os.Getenv("V") != "" {
					fmt.Printf("MISSED %v seed %d\n", k, seed)
				}
			}
		}
		fmt.Printf("%-26v traces %d missed %d; complaints %d (with truth %d) verdicts %d right %d wrong %d none %d\n", k, traces, missed, complaints, truths, verdicts, right, wrong, none)
	}
}
