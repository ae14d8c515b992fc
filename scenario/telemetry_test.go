package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/flowset"
)

const labelled = `duration: 2ms
topology:
  generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 3}
traffic:
  - {kind: persistent, pairs: [h0>h3, h1>h4], rate: 5Gb/s}
`

// collect runs a scenario and returns what came to the collector, as lines.
func collect(t *testing.T, text string) (*Result, string) {
	t.Helper()
	var log bytes.Buffer
	var reports uint64
	r, err := Run(t.Context(), mustParse(t, text), Options{Sink: func(at model.Time, from model.NodeID, datagram []byte) {
		var read dta.Reader
		if err := read.Reset(datagram); err != nil {
			t.Fatalf("datagram %x: %v", datagram, err)
		}
		for rep := (dta.Report{}); read.Next(&rep); {
			reports++
		}
		fmt.Fprintf(&log, "%v %d %x\n", at, from, datagram)
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Telemetry == nil || r.Telemetry.Delivered != reports {
		t.Fatalf("%d reports arrived, accounts say %+v", reports, r.Telemetry)
	}
	if got := r.Telemetry.Delivered + r.Telemetry.InFlight + r.Telemetry.lost(); got != r.Telemetry.Reports {
		t.Errorf("%+v: %d reports accounted for; want all %d", r.Telemetry, got, r.Telemetry.Reports)
	}
	return r, log.String()
}

// TestTelemetryReachesTheSink runs labels over management networks of all sorts
// and in-band.
func TestTelemetryReachesTheSink(t *testing.T) {
	const program = "telemetry:\n  - {kind: label, interval: 50us}\n"
	plain, log := collect(t, labelled+program)
	if plain.Telemetry.Switches != 4 || plain.Telemetry.Reports < 50 || plain.Telemetry.lost() != 0 {
		t.Errorf("%+v; want many reports of 4 switches, none lost", plain.Telemetry)
	}
	if _, again := collect(t, labelled+program); again != log {
		t.Error("the same seed brings other reports")
	}
	for name, tc := range map[string]struct {
		text string
		ok   func(r *Result) bool
	}{
		"two switches": {"telemetry:\n  - {kind: label, interval: 50us, switches: leaf0..leaf1}\n", func(r *Result) bool { return r.Telemetry.Switches == 2 && r.Telemetry.Delivered > 0 }},
		"lossy":        {program + "management: {loss: 30%}\n", func(r *Result) bool { return r.Telemetry.Lost["management network"] > 5 && r.Telemetry.Delivered > 5 }},
		"deaf":         {program + "management: {loss: 100%}\n", func(r *Result) bool { return r.Telemetry.Delivered == 0 && r.Telemetry.lost() > 50 }},
		"far":          {program + "management: {delay: 5ms}\n", func(r *Result) bool { return r.Telemetry.Delivered == 0 && r.Telemetry.InFlight == r.Telemetry.Reports }},
		"in-band":      {program + "management: {in-band: on, collector: h5}\n", func(r *Result) bool { return r.Telemetry.Delivered > 50 && r.Telemetry.lost() == 0 }},
		"in-band, paused": {
			program + "management: {in-band: on, collector: h5, priority: 3}\nfaults:\n  - {kind: storm, host: h5}\n",
			func(r *Result) bool { return r.Telemetry.Delivered == 0 && r.Telemetry.InFlight > 50 },
		},
		"in-band, unpaused": {
			program + "management: {in-band: on, collector: h5, priority: 3, unpaused: on}\nfaults:\n  - {kind: storm, host: h5}\n",
			func(r *Result) bool { return r.Telemetry.Delivered > 50 },
		},
		"expected": {program + "expect: {reports: some, reports-delivered: above 50, reports-lost: none}\n", func(r *Result) bool { return r.Verdict == Pass && len(r.Expected) == 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			if r, _ := collect(t, labelled+tc.text); !tc.ok(r) {
				t.Errorf("telemetry %+v, verdict %s", r.Telemetry, r.Verdict)
			}
		})
	}
	if r := runScenario(t, mustParse(t, labelled+"expect: {reports: none}\n")); r.Telemetry != nil || r.Verdict != Fail {
		t.Errorf("without programs: %+v, %s; want no accounts, and nothing known of reports", r.Telemetry, r.Verdict)
	}
}

// TestFlowsetsOverAnyCarrier: chunks fit the carrier, arrive on the lists of
// their switches after those of programs before, and passive programs change
// nothing of the traffic.
func TestFlowsetsOverAnyCarrier(t *testing.T) {
	without := runScenario(t, mustParse(t, labelled))
	for name, tc := range map[string]struct {
		management, cells string
		bytes             int // of a cell
		passive           bool
	}{
		"management": {"", "wide", 26, true}, "narrow": {"", "narrow", 18, true},
		"in-band": {"management: {in-band: on, collector: h5}\n", "wide", 26, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, labelled+"telemetry:\n  - {kind: epoch}\n  - {kind: flowset, slot: 500us, flows: 100, ipv6: off, cells: "+tc.cells+"}\n"+tc.management)
			lists := map[dta.ListID]model.NodeID{}
			r, err := Run(t.Context(), s, Options{Sink: func(_ model.Time, from model.NodeID, datagram []byte) {
				var read dta.Reader
				_ = read.Reset(datagram)
				for rep := (dta.Report{}); read.Next(&rep); {
					var h flowset.Chunk
					if _, err := h.Parse(rep.Data); err != nil {
						t.Fatalf("report %x: %v", rep.Data, err)
					}
					if n := h.Layout.Size(); n != tc.bytes {
						t.Fatalf("cells of %d bytes; want %d", n, tc.bytes)
					}
					lists[rep.List] = from
				}
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.FirstList(0) != 0 || s.FirstList(1) != 1 || len(lists) != 4 || r.Telemetry.lost() != 0 {
				t.Errorf("lists %v from %d on, %v; want those of four switches from 1 on, nothing lost", lists, s.FirstList(1), r.Telemetry)
			}
			for list, from := range lists {
				if n := slices.Index(s.fabric().Switches(), from); list != dta.ListID(1+n) {
					t.Errorf("switch %d appends to list %d; want %d", from, list, 1+n)
				}
			}
			if tc.passive && !cmp.Equal(without.Run.Flows, r.Run.Flows) {
				t.Errorf("flows with programs (-without +with):\n%s", cmp.Diff(without.Run.Flows, r.Run.Flows))
			}
		})
	}
}

// TestProgramSeedsDiffer: by switch, by position in the list, by the seed of
// the run; and the error of a program that cannot be made has a position.
func TestProgramSeedsDiffer(t *testing.T) {
	s := mustParse(t, labelled)
	seeds := map[uint64]int{}
	for range 2 {
		s.Telemetry = append(s.Telemetry, Program{Kind: "spy", New: func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) {
			seeds[g.Seed]++
			return nothingToDo{}, nil
		}})
	}
	for _, seed := range []uint64{1, 2, 1} {
		s.Seed = seed
		runScenario(t, s)
	}
	if len(seeds) != 16 {
		t.Errorf("%d seeds for 2 programs in 4 switches in runs of 2 seeds; want 16", len(seeds))
	}
	s.Telemetry[1] = Program{Position: Position{File: "x.yaml", Line: 9}, Kind: "odd", New: func(dev inswitch.Device, _ ProgramInputs) (inswitch.Program, error) {
		return nil, fmt.Errorf("no capacity in switch %d, want more", dev.ID)
	}}
	if _, err := Run(t.Context(), s, Options{}, nil); err == nil || !strings.HasPrefix(err.Error(), "x.yaml:9: odd at ") {
		t.Errorf("Run = %v; want an error at line 9 of x.yaml", err)
	}
}

type nothingToDo struct{}

func (nothingToDo) Stages() inswitch.Stages                    { return inswitch.StageSet(inswitch.Ingress) }
func (nothingToDo) Observe(*inswitch.Event, *inswitch.Actions) {}

func TestTelemetryErrors(t *testing.T) {
	for text, want := range map[string]string{
		"telemetry:\n  - {kind: magic}\n":                                        `test.yaml:7: kind "magic", want one of `,
		"telemetry:\n  - {kind: label, switches: h0}\n":                          "test.yaml:7: h0 is a host, want a switch",
		"telemetry:\n  - {kind: label, switches: [leaf0, leaf0]}\n":              "test.yaml:7: leaf0 runs label twice, want it once",
		"telemetry:\n  - {kind: label, interval: 0}\n":                           "test.yaml:7: interval 0s, want more than 0",
		"telemetry:\n  - {kind: label, probability: bad}\n":                      `test.yaml:7: probability "bad", want always, linear, timed or a list of shares`,
		"telemetry:\n  - {kind: label, probability: [0, 200%]}\n":                `test.yaml:7: probability, item 2 "200%", want a share`,
		"telemetry:\n  - {kind: label, max-hop: 99}\n":                           "test.yaml:7: 99 labels on a packet, want 1 to 32",
		"telemetry:\n  - {kind: label, hop: 9}\n":                                `test.yaml:7: unknown key "hop" in label, want one of kind, switches, interval`,
		"telemetry:\n  - {kind: flowset, flows: 0}\n":                            "test.yaml:7: 0 flows, want 1 to",
		"telemetry:\n  - {kind: flowset, slot: 0}\n":                             "test.yaml:7: slot 0s, want more than 0",
		"telemetry:\n  - {kind: flowset, cells: slim}\n":                         `test.yaml:7: cells "slim", want wide or narrow`,
		"telemetry:\n  - {kind: flowset, decode: alone}\n":                       `test.yaml:7: decode "alone", want single or net`,
		"telemetry:\n  - {kind: epoch, flows: 3}\n":                              "test.yaml:7: table of 3 flows, want 0 or a power of two",
		"management: {in-band: on}\n":                                            `test.yaml:6: in-band on and collector "", want a host as collector`,
		"management: {collector: h0}\n":                                          `test.yaml:6: in-band off and collector "h0", want a host as collector`,
		"management: {in-band: on, collector: leaf0}\n":                          "test.yaml:6: leaf0 is a switch, want a host",
		"management: {in-band: on, collector: h0, priority: 8}\n":                `test.yaml:6: priority "8", want 0 to 7`,
		"management: {reorder: 3%}\n":                                            `test.yaml:6: reorder "3%", want on or off`,
		"telemetry:\n  - kind: label\n    min-interval: 1s\n    interval: 1ms\n": "test.yaml:7: minimum interval 1s, want 0 to the interval, 1ms",
	} {
		if _, err := parse("test.yaml", []byte(labelled+text), nothing); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("parse = %v\nwant %s… of\n%s", err, want, text)
		}
	}
}
