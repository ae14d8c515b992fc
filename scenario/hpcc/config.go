// Package hpcc reads the input files of the HPCC simulator and of Hawkeye's
// fork of it, and sets up a run that behaves as theirs: same thresholds, same
// header sizes, same hash, same order of next hops. Running it and reporting is
// scenario's and sim's work; topologies and flow files are read by topo/file
// and sim/traffic.
//
// docs/hpcc.md lists the keys and the intended differences.
package hpcc

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/topo/file"
)

// Config is a configuration file. Omitted keys have the original's values;
// where those cannot work, the values of its example.
type Config struct {
	File string // its name in errors

	// Input files as the configuration spells them; Build finds them.
	Topology, Flows, Routes string
	// Output files, as the configuration spells them.
	FCT, PFC string

	Stop    model.Time
	Payload int32 // bytes in a packet

	Mode  Mode // of congestion control
	DCQCN congestion.DCQCNParams
	// Parameters of other controls. They share gain, increases and minimum rate
	// with DCQCN.
	HPCC    congestion.HPCCParams
	DCTCPAI model.Rate

	ECN bool // switches mark
	// Marking curves by port rate, in bit/s.
	Kmin, Kmax map[model.Rate]model.Bytes
	Pmax       map[model.Rate]float64

	Buffer       model.Bytes // of each switch
	Window       bool
	GlobalWindow bool // every flow has the largest window of any pair
	VarWindow    bool // scale the window by the rate
	RateBound    bool // pace at the rate of congestion control
	AckFirst     bool // hosts send acknowledgements by a queue that is never paused

	ErrorRate float64 // of links that have no error rate
	Down      LinkDown

	// Hawkeye reports whether the file has keys of Hawkeye's fork.
	Hawkeye   bool
	Agents    []model.NodeID // hosts that measure their round-trip times
	Threshold time.Duration  // above which they poll
	Epoch     time.Duration  // of telemetry
	NoCC      []model.NodeID // hosts that send without congestion control

	// Ignored lists keys without effect, one sentence per reason.
	Ignored []string

	network     bool   // of SimAI: without input files
	bufferSize  uint64 // as written: its unit depends on Hawkeye
	ackInterval uint64
	line        map[string]int // of each key
	notes       []string
}

// Mode is the original's number of a congestion control.
type Mode int

// Modes of the original. Weft has all but the last.
const (
	NoControl Mode = 0
	DCQCN     Mode = 1
	HPCC      Mode = 3
	TIMELY    Mode = 7
	DCTCP     Mode = 8
	PINT      Mode = 10
)

var modeNames = map[Mode]string{
	NoControl: "no control", DCQCN: "DCQCN", HPCC: "HPCC", TIMELY: "TIMELY", DCTCP: "DCTCP", PINT: "HPCC-PINT",
}

// String prints the mode's name.
func (m Mode) String() string {
	if s, ok := modeNames[m]; ok {
		return s
	}
	return fmt.Sprintf("mode %d", int(m))
}

// LinkDown takes the link between two nodes down permanently. A zero After is
// no fault.
type LinkDown struct {
	After time.Duration // from linkDownBase on
	A, B  model.NodeID
}

// linkDownBase is when the original's clock for LINK_DOWN starts: its workloads
// start at two seconds.
const linkDownBase = model.Time(2 * time.Second)

// maxConfig bounds a configuration file. Real ones have 60 lines.
const maxConfig = 1 << 20

// Read reads a configuration file.
func Read(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the bytes of a configuration file: a line "KEY value…" for each
// key, empty lines, and comments from a word that starts with # or //. Errors
// are *file.Error.
func Parse(name string, data []byte) (*Config, error) { return parse(name, data, false) }

func parse(name string, data []byte, network bool) (*Config, error) {
	if len(data) > maxConfig {
		return nil, &file.Error{File: name, Msg: fmt.Sprintf("more than %v, want less", model.Bytes(maxConfig))}
	}
	c := defaults(name)
	c.network = network
	no := 0
	ignored := make(map[string][]string) // keys by reason
	var reasons []string
	for text := range strings.Lines(string(data)) {
		no++
		words := fields(text)
		if len(words) == 0 {
			continue
		}
		name, values := words[0], words[1:]
		if first, twice := c.line[name]; twice {
			c.notes = append(c.notes, fmt.Sprintf("%s is on lines %d and %d of %s: the last one applies", name, first, no,
				c.File))
		}
		c.line[name] = no
		k, known := keys[name]
		if other, is := networkKeys[name]; is && network {
			k, known = other, true
		}
		switch {
		case !known:
			return nil, c.errorf(name, "unknown key %q, want %s", name, nearest(name))
		case k.ignored != "":
			if ignored[k.ignored] == nil {
				reasons = append(reasons, k.ignored)
			}
			if !slices.Contains(ignored[k.ignored], name) {
				ignored[k.ignored] = append(ignored[k.ignored], name)
			}
		default:
			if err := k.set(c, values); err != nil {
				return nil, c.errorf(name, "%s %s", name, err)
			}
		}
	}
	for _, why := range reasons {
		c.Ignored = append(c.Ignored, fmt.Sprintf("ignored: %s because %s", strings.Join(ignored[why], ", "), why))
	}
	return c, c.resolveDependent()
}

func defaults(name string) *Config {
	c := &Config{
		File: name, FCT: "fct.txt", PFC: "pfc.txt",
		Stop: model.Time(3010 * time.Millisecond), Payload: 1000,
		Mode: DCQCN, DCQCN: *congestion.HPCCSimDCQCN(), HPCC: *congestion.DefaultHPCC(),
		DCTCPAI: congestion.DefaultDCTCP().AI, ECN: true,
		bufferSize: 16, Window: true, GlobalWindow: true, RateBound: true,
		Threshold: 50 * time.Microsecond, Epoch: time.Millisecond,
		line: make(map[string]int),
	}
	c.DCQCN.AlphaInterval, c.DCQCN.FastRecovery = 55*time.Microsecond, 5
	return c
}

// resolveDependent sets what depends on several keys.
func (c *Config) resolveDependent() error {
	for _, key := range []string{"TOPOLOGY_FILE", "FLOW_FILE"} {
		if c.line[key] == 0 && !c.network {
			return &file.Error{File: c.File, Msg: fmt.Sprintf("no %s, want one", key)}
		}
	}
	c.Buffer = model.Bytes(c.bufferSize) * model.MiB
	if c.Hawkeye {
		c.Buffer = model.Bytes(c.bufferSize) * model.KiB
	}
	// The original resets its milestone with every packet, so it acknowledges
	// every packet after that many bytes.
	if n := c.ackInterval; n > uint64(c.Payload) {
		c.notes = append(c.notes, fmt.Sprintf("L2_ACK_INTERVAL %d: every packet is acknowledged, in the original every one after the first %d bytes", n, n))
	}
	return nil
}

// fields splits a line into words, without comments.
func fields(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if strings.HasPrefix(w, "#") || strings.HasPrefix(w, "//") {
			return words[:i]
		}
	}
	return words
}

// errorf returns an error about a key, at its line.
func (c *Config) errorf(key, format string, args ...any) error {
	return &file.Error{File: c.File, Line: c.line[key], Msg: fmt.Sprintf(format, args...)}
}
