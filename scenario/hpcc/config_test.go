package hpcc

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
)

const least = "TOPOLOGY_FILE t\nFLOW_FILE f\n"

func TestParseSetsEveryKey(t *testing.T) {
	c, err := Parse("c.txt", []byte(`
ENABLE_QCN 0
PACKET_PAYLOAD_SIZE 1400
TOPOLOGY_FILE mix/t.txt   # the fabric
FLOW_FILE mix/f.txt       // and what runs on it
ROUTE_FILE mix/r.txt
FCT_OUTPUT_FILE a
PFC_OUTPUT_FILE b
SIMULATOR_STOP_TIME 4.25
CC_MODE 10
CLAMP_TARGET_RATE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 2.5
RP_TIMER 300
EWMA_GAIN 0.0625
FAST_RECOVERY_TIMES 3
RATE_AI 5Mb/s
RATE_HAI 50Mbps
MIN_RATE 1Gb/s
U_TARGET 0.9
MI_THRESH 0
INT_MULTI 2
FAST_REACT 0
MULTI_RATE 0
SAMPLE_FEEDBACK 1
DCTCP_RATE_AI 500Mb/s
KMIN_MAP 2 25000000000 100 50000000000 200
KMAX_MAP 1 25000000000 400
PMAX_MAP 1 25000000000 0.2
BUFFER_SIZE 9
HAS_WIN 0
GLOBAL_T 0
VAR_WIN 1
RATE_BOUND 0
ACK_HIGH_PRIO 1
L2_ACK_INTERVAL 1
ERROR_RATE_PER_LINK 0.001
LINK_DOWN 250 3 4
PAUSE_TIME 5
AGENT_NODE 2 1 7
NO_CC_NODE 1 9
AGENT_THRESHOLD 80
EPOCH_TIME 200000
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		File: "c.txt", Topology: "mix/t.txt", Flows: "mix/f.txt", Routes: "mix/r.txt", FCT: "a", PFC: "b",
		Stop: 4250 * model.Time(time.Millisecond), Payload: 1400, Mode: PINT,
		Kmin: map[model.Rate]model.Bytes{25e9: 100_000, 50e9: 200_000},
		Kmax: map[model.Rate]model.Bytes{25e9: 400_000},
		Pmax: map[model.Rate]float64{25e9: 0.2},
		// KB, because the file has keys of the fork.
		Buffer: 9 * model.KiB, VarWindow: true, AckFirst: true,
		ErrorRate: 0.001, Down: LinkDown{250 * time.Microsecond, 3, 4},
		Hawkeye: true, Agents: []model.NodeID{1, 7}, NoCC: []model.NodeID{9},
		Threshold: 80 * time.Microsecond, Epoch: 200 * time.Microsecond,
	}
	want.HPCC = *congestion.DefaultHPCC()
	want.HPCC.Target, want.HPCC.Stages, want.HPCC.Multi = 0.9, 0, 2
	want.HPCC.Fast, want.HPCC.PerHop, want.HPCC.Sampled = false, false, true
	want.DCTCPAI = 500 * model.Mbps
	want.DCQCN = c.DCQCN
	want.bufferSize, want.ackInterval, want.line = c.bufferSize, c.ackInterval, c.line
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("Parse differs (-want +got):\n%s", diff)
	}
	d := c.DCQCN
	if d.Gain != 1./16 || d.AlphaInterval != time.Microsecond || d.DecreaseInterval != 2*time.Microsecond ||
		d.IncreaseInterval != 300*time.Microsecond || d.FastRecovery != 3 || d.AI != 5e6 || d.HAI != 50e6 || d.MinRate != 1e9 || !d.ClampTarget {
		t.Errorf("DCQCN constants are %+v; want those of the file", d)
	}
	if c.line["EPOCH_TIME"] != 43 {
		t.Errorf("EPOCH_TIME is on line %d; want 43", c.line["EPOCH_TIME"])
	}
}

func TestParseDefaults(t *testing.T) {
	c, err := Parse("c.txt", []byte(least))
	if err != nil {
		t.Fatal(err)
	}
	if c.Buffer != 16*model.MiB || c.Mode != DCQCN || !c.ECN || !c.Window || !c.GlobalWindow || c.VarWindow || !c.RateBound ||
		c.Payload != 1000 || c.Stop != 3010*model.Time(time.Millisecond) || c.FCT != "fct.txt" || c.PFC != "pfc.txt" || c.Hawkeye {
		t.Errorf("Parse of two file names = %+v; want the original's defaults", c)
	}
}

func TestParseSaysWhatItIgnores(t *testing.T) {
	c, err := Parse("c.txt", []byte(least+"PINT_PROB 0.95\nQLEN_MON_FILE x\nPINT_LOG_BASE 2\nDATA_RATE\nPINT_PROB 0.9\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ignored: PINT_PROB, PINT_LOG_BASE because " + whyControl,
		"ignored: QLEN_MON_FILE because " + whyQueue,
		"ignored: DATA_RATE because " + whyLinks,
	}
	if diff := cmp.Diff(want, c.Ignored); diff != "" {
		t.Errorf("Ignored differs (-want +got):\n%s", diff)
	}
	if note := "PINT_PROB is on lines 3 and 7 of c.txt: the last one applies"; !slices.Contains(c.notes, note) {
		t.Errorf("notes are %q; want %q", c.notes, note)
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]string{
		"RATE_AL 5Mb/s":                       "c.txt:3: unknown key \"RATE_AL\", want RATE_AI",
		"FLOWS f":                             "c.txt:3: unknown key \"FLOWS\", want FLOW_FILE",
		"\n\nrate_ai 5Mb/s":                   "c.txt:5: unknown key \"rate_ai\", want RATE_AI",
		"\x1f\xe3 5":                          "c.txt:3: unknown key \"\\x1f\\xe3\", want a key of an HPCC configuration, such as TOPOLOGY_FILE",
		"CC_MODE":                             "c.txt:3: CC_MODE has no value, want a whole number",
		"CC_MODE # none":                      "c.txt:3: CC_MODE has no value, want a whole number",
		"RP_TIMER 0.5":                        "c.txt:3: RP_TIMER 0.5, want at least 1: the original uses whole microseconds",
		"CC_MODE 1 3":                         "c.txt:3: CC_MODE 1 3 has 2 values, want one: a whole number",
		"CC_MODE 2":                           "c.txt:3: CC_MODE 2, want 1 (DCQCN), 0 (none), 3 (HPCC)",
		"CC_MODE dcqcn":                       `c.txt:3: CC_MODE "dcqcn", want a whole number`,
		"HAS_WIN 2":                           `c.txt:3: HAS_WIN "2", want a whole number from 0 to 1`,
		"PACKET_PAYLOAD_SIZE 10":              `c.txt:3: PACKET_PAYLOAD_SIZE "10", want a whole number from 64 to 9600`,
		"RATE_AI 5MB/s":                       `c.txt:3: RATE_AI "5MB/s" counts bytes, want bits`,
		"RATE_AI fast":                        `c.txt:3: RATE_AI rate "fast"`,
		"MIN_RATE 0":                          `c.txt:3: MIN_RATE "0", want at least 1b/s`,
		"EWMA_GAIN 0":                         `c.txt:3: EWMA_GAIN "0", want a number above 0 and at most 1`,
		"EWMA_GAIN NaN":                       `c.txt:3: EWMA_GAIN "NaN", want a number above 0`,
		"RP_TIMER -1":                         `c.txt:3: RP_TIMER "-1", want a number above 0`,
		"SIMULATOR_STOP_TIME 1e99":            `c.txt:3: SIMULATOR_STOP_TIME "1e99", want a number above 0 and at most 1e+06`,
		"ERROR_RATE_PER_LINK 2":               `c.txt:3: ERROR_RATE_PER_LINK "2", want a number from 0 to 1`,
		"PAUSE_TIME 0":                        `c.txt:3: PAUSE_TIME "0", want a number above 0`,
		"L2_ACK_INTERVAL 0":                   `c.txt:3: L2_ACK_INTERVAL "0", want a whole number from 1`,
		"BUFFER_SIZE 0":                       `c.txt:3: BUFFER_SIZE "0", want a whole number from 1`,
		"KMIN_MAP":                            "c.txt:3: KMIN_MAP has no value, want a count",
		"KMIN_MAP 2 25000000000 100":          `c.txt:3: KMIN_MAP "2" and 2 words after it, want a count and as many pairs`,
		"KMIN_MAP 1 25000000000 100 5 6":      `c.txt:3: KMIN_MAP "1" and 4 words after it, want a count and as many pairs`,
		"KMIN_MAP 99999999999999999999 1 1":   `c.txt:3: KMIN_MAP "99999999999999999999" and 2 words`,
		"KMAX_MAP 1 quick 100":                `c.txt:3: KMAX_MAP rate "quick"`,
		"KMAX_MAP 1 25000000000 -1":           `c.txt:3: KMAX_MAP "-1" for 25Gb/s, want a whole number of KB`,
		"PMAX_MAP 1 25000000000 1.5":          `c.txt:3: PMAX_MAP "1.5", want a number from 0 to 1`,
		"AGENT_NODE":                          "c.txt:3: AGENT_NODE has no value, want a count",
		"AGENT_NODE 2 1":                      `c.txt:3: AGENT_NODE "2" and 1 words after it, want a count and as many node ids`,
		"NO_CC_NODE 1 x":                      `c.txt:3: NO_CC_NODE node "x", want an id from 0 to 65535`,
		"LINK_DOWN 5 1":                       "c.txt:3: LINK_DOWN has 2 values, want three",
		"LINK_DOWN 1.5 1 2":                   `c.txt:3: LINK_DOWN time "1.5", want microseconds`,
		"LINK_DOWN 5 1 -2":                    `c.txt:3: LINK_DOWN node "-2", want an id`,
		"ROUTE_FILE":                          "c.txt:3: ROUTE_FILE has no value, want a file name",
		"TOPOLOGY_FILE two names":             "c.txt:3: TOPOLOGY_FILE two names has 2 values, want one: a file name",
		"AGENT_THRESHOLD 1h":                  `c.txt:3: AGENT_THRESHOLD "1h", want a number above 0`,
		"EPOCH_TIME 0":                        `c.txt:3: EPOCH_TIME "0", want a whole number from 1`,
		strings.Repeat("# x\n", 1<<20/4) + "": "c.txt: more than 1MiB, want less",
	} {
		c, err := Parse("c.txt", []byte(least+in))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%.40q) = %v, %v; want an error that begins %q", in, c, err, want)
		}
	}
	for in, want := range map[string]string{
		"":                "c.txt: no TOPOLOGY_FILE, want one",
		"TOPOLOGY_FILE t": "c.txt: no FLOW_FILE, want one",
	} {
		if _, err := Parse("c.txt", []byte(in)); err == nil || err.Error() != want {
			t.Errorf("Parse(%q) says %v; want %q", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(least))
	f.Add([]byte(least + "KMAX_MAP 1 25000000000 400\nAGENT_NODE 1 4\nBUFFER_SIZE 9\nLINK_DOWN 1 2 3\n"))
	f.Add([]byte(least + "RATE_AI 5Mb/s # slow\nPMAX_MAP 0\nTRACE_FILE\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := Parse("c.txt", in)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "c.txt:") || !strings.Contains(err.Error(), "want") {
				t.Errorf("Parse(%q) says %q; want the file first and what is wanted", in, err)
			}
			return
		}
		if err := c.DCQCN.Check(); err != nil {
			t.Errorf("Parse(%q) accepts constants that cannot work: %v", in, err)
		}
		if c.Topology == "" || c.Flows == "" || c.Stop <= 0 || c.Buffer <= 0 || c.Payload < 64 || c.ErrorRate < 0 || c.ErrorRate > 1 ||
			c.Threshold <= 0 || c.Epoch <= 0 || c.Down.After < 0 {
			t.Errorf("Parse(%q) = %+v; want every field in its range", in, c)
		}
	})
}
