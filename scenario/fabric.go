package scenario

import (
	"math"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// fabricSpec is the section fabric: settings of switches and NICs. The defaults
// are those of sim.DefaultConfig.
type fabricSpec struct {
	sourcePos

	MTU      model.Bytes `yaml:"mtu"`      // largest payload of a packet
	Overhead autoBytes   `yaml:"overhead"` // what headers add to it; auto: RoCEv2's
	AckSize  autoBytes   `yaml:"ack-size"` // auto: RoCEv2's
	TTL      uint8       `yaml:"ttl"`

	Buffer       model.Bytes `yaml:"buffer"` // of each switch
	Accounting   string      `yaml:"accounting"`
	Reserve      model.Bytes `yaml:"reserve"` // of each port and priority
	Headroom     autoBytes   `yaml:"headroom"`
	Alpha        alphaShift  `yaml:"alpha"`
	ResumeOffset model.Bytes `yaml:"resume-offset"`
	Xoff         model.Bytes `yaml:"xoff"`
	Xon          model.Bytes `yaml:"xon"`
	LossyQueue   model.Bytes `yaml:"lossy-queue"`

	PFC       bool      `yaml:"pfc"`
	Lossless  []uint8   `yaml:"lossless"` // priorities
	PauseTime pauseTime `yaml:"pause-time"`

	ECN   ecnSpec `yaml:"ecn"`
	ECNAt string  `yaml:"ecn-at"`

	Congestion  congestionSpec `yaml:"congestion-control"`
	CNPInterval time.Duration  `yaml:"cnp-interval"` // 0: every acknowledgement echoes its mark
	Pacing      bool           `yaml:"pacing"`

	Window      string        `yaml:"window"`
	WindowScale bool          `yaml:"window-scales"`
	AckEvery    model.Bytes   `yaml:"ack-every"`
	AckUnpaused bool          `yaml:"ack-unpaused"`
	NackGap     time.Duration `yaml:"nack-gap"`
	RTO         time.Duration `yaml:"rto"`
	TCPRTO      time.Duration `yaml:"tcp-rto"` // minimum timeout of TCP
	Ideal       string        `yaml:"ideal"`

	LoadBalancing  string        `yaml:"load-balancing"`
	Retransmission string        `yaml:"retransmission"`
	ReorderWindow  int           `yaml:"reorder-window"` // packets
	ReorderTime    time.Duration `yaml:"reorder-time"`
	Trimming       bool          `yaml:"trimming"`
}

func defaultFabric() fabricSpec {
	c := sim.DefaultConfig()
	f := fabricSpec{
		MTU: model.Bytes(c.MTU), Overhead: autoBytes(c.Overhead), AckSize: autoBytes(c.AckSize), TTL: c.TTL,
		Buffer: c.Buffer, Accounting: "weft", Reserve: c.Reserve, Headroom: autoBytes(c.Headroom),
		Alpha: alphaShift(c.AlphaShift), ResumeOffset: c.ResumeOffset, Xoff: c.Xoff, Xon: c.Xon, LossyQueue: c.LossyQueue,
		PFC: !c.NoPFC, PauseTime: pauseTime(c.PauseTime), ECN: ecnSpec{list: c.ECN}, ECNAt: "departure",
		Congestion: congestionSpec{c.Congestion}, CNPInterval: c.CNPInterval, Pacing: c.RateBound,
		Window: "off", WindowScale: c.VarWindow, AckEvery: model.Bytes(c.AckPerBytes), AckUnpaused: c.AckControl,
		NackGap: c.NackGap, RTO: c.RTO, TCPRTO: c.TCPMinRTO, Ideal: "exact",
		LoadBalancing: c.LoadBalancing.String(), Retransmission: "go-back-n",
		ReorderWindow: int(c.ReorderWindow), ReorderTime: c.ReorderTime, Trimming: c.Trimming,
	}
	for p := range uint8(8) {
		if c.Lossless>>p&1 != 0 {
			f.Lossless = append(f.Lossless, p)
		}
	}
	return f
}

// config returns the simulator's configuration, checked.
func (f *fabricSpec) config() (sim.Config, error) {
	c := sim.Config{
		MTU: clampInt32(f.MTU), Overhead: clampInt32(model.Bytes(f.Overhead)), AckSize: clampInt32(model.Bytes(f.AckSize)), TTL: f.TTL,
		Buffer: f.Buffer, Reserve: f.Reserve, Headroom: model.Bytes(f.Headroom), AlphaShift: uint8(f.Alpha),
		ResumeOffset: f.ResumeOffset, Xoff: f.Xoff, Xon: f.Xon, LossyQueue: f.LossyQueue,
		NoPFC: !f.PFC, PauseTime: time.Duration(f.PauseTime), ECN: f.ECN.list,
		Congestion: f.Congestion.params, CNPInterval: f.CNPInterval, RateBound: f.Pacing,
		VarWindow: f.WindowScale, AckPerBytes: int64(f.AckEvery), AckControl: f.AckUnpaused, NackGap: f.NackGap, RTO: f.RTO,
		TCPMinRTO: f.TCPRTO, ReorderWindow: clampInt32(model.Bytes(f.ReorderWindow)), ReorderTime: f.ReorderTime, Trimming: f.Trimming,
	}
	for _, p := range f.Lossless {
		if p > 7 {
			return c, f.errorf("lossless", "lossless priority %d, want 0 to 7", p)
		}
		c.Lossless |= 1 << p
	}
	for _, w := range []struct {
		key, word string
		off, on   string
		set       *bool
	}{
		{"accounting", f.Accounting, "weft", "hpcc", &c.HPCC},
		{"ecn-at", f.ECNAt, "departure", "arrival", &c.ECNAtEnq},
		{"ideal", f.Ideal, "exact", "hpcc", &c.HPCCIdeal},
		{"retransmission", f.Retransmission, "go-back-n", "selective", &c.Selective},
	} {
		switch strings.ToLower(w.word) {
		case w.off:
		case w.on:
			*w.set = true
		default:
			return c, f.errorf(w.key, "%s %q, want %s or %s", w.key, w.word, w.off, w.on)
		}
	}
	var ok bool
	if c.LoadBalancing, ok = sim.FindLoadBalancing(strings.ToLower(f.LoadBalancing)); !ok {
		return c, f.errorf("load-balancing", "load-balancing %q, want ecmp, spray or adaptive", f.LoadBalancing)
	}
	switch strings.ToLower(f.Window) {
	case "off":
	case "path":
		c.Window = true
	case "fabric":
		c.Window, c.GlobalWindow = true, true
	default:
		return c, f.errorf("window", "window %q, want off, path or fabric", f.Window)
	}
	if err := f.suitCongestion(&c); err != nil {
		return c, err
	}
	return c, f.check(&c)
}

func (f *fabricSpec) check(c *sim.Config) error {
	if f.Xoff > 0 && f.Xon >= f.Xoff {
		return f.errorf("xon", "xon %v, want below xoff, which is %v", f.Xon, f.Xoff)
	}
	if f.Xon > 0 && f.Xoff == 0 {
		return f.errorf("xon", "xon %v without xoff, want both for static thresholds", f.Xon)
	}
	// Errors of sim name their field first.
	if err := c.Check(); err != nil {
		msg := trimPackageNames(err)
		for prefix, key := range map[string]string{
			"MTU": "mtu", "buffer": "buffer", "TTL": "ttl", "ECN": "ecn",
			"minimum TCP timeout": "tcp-rto", "trimming": "trimming", "reorder window": "reorder-window", "reorder time": "reorder-time",
		} {
			if strings.HasPrefix(msg, prefix) {
				return f.errorf(key, "%s", msg)
			}
		}
		return f.errorf("", "%s", msg)
	}
	return nil
}

// trimPackageNames removes the names of packages, and a generator's number,
// from an error: file and line precede it.
func trimPackageNames(err error) string {
	msg := err.Error()
	prefixes := []string{
		"sim: ", "mmu: ", "simhost: ", "plan flowset: ", "flowset: ", "epoch: ", "label: ", "agent: ", "diagnose: ",
	}
	for _, a := range congestion.Algorithms() {
		prefixes = append(prefixes, a.Name+": ")
	}
	for _, prefix := range prefixes {
		msg = strings.ReplaceAll(msg, prefix, "")
	}
	if _, rest, ok := strings.Cut(msg, "): "); ok && strings.HasPrefix(msg, "generator ") {
		msg = rest
	}
	return msg
}

// clampInt32 converts a size to 32 bits; one that is too large stays too large
// for every bound.
func clampInt32(n model.Bytes) int32 { return int32(min(n, math.MaxInt32)) }

// ecnSpec is "off" or a list of marking curves by port rate.
type ecnSpec struct{ list []sim.ECNParams }

type ecnCurve struct {
	sourcePos
	Rate model.Rate  `yaml:"rate"` // of ports from this rate on
	Kmin model.Bytes `yaml:"kmin"`
	Kmax model.Bytes `yaml:"kmax"`
	Pmax share       `yaml:"pmax"`
}

func (p *ecnSpec) decode(v tree.Value, what string) error {
	if s, err := v.Text(what); err == nil {
		if on, err := parseSwitch(s); err != nil || on {
			return v.Errorf("%s %q, want off or a list of marking curves", what, s)
		}
		p.list = nil
		return nil
	}
	var curves []ecnCurve
	if err := decode(v, &curves, what); err != nil {
		return err
	}
	p.list = make([]sim.ECNParams, len(curves))
	for i, c := range curves {
		if !c.has("kmin") || !c.has("kmax") || !c.has("pmax") {
			return c.errorf("", "marking curve %d, want kmin, kmax and pmax", i+1)
		}
		if c.Kmin > c.Kmax {
			return c.errorf("kmin", "kmin %v, want at most kmax, which is %v", c.Kmin, c.Kmax)
		}
		p.list[i] = sim.ECNParams{Rate: c.Rate, Kmin: c.Kmin, Kmax: c.Kmax, Pmax: float64(c.Pmax)}
	}
	return nil
}
