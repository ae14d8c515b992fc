package scenario

import (
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/sim"
)

// FabricSection returns the section fabric of a scenario file with the same settings
// of switches and congestion control.
func (s *Scenario) FabricSection() string {
	cfg := &s.Sim
	def := sim.DefaultConfig()
	var b strings.Builder
	set := func(key string, changed bool, value any) {
		if changed {
			fmt.Fprintf(&b, "  %s: %v\n", key, value)
		}
	}
	set("mtu", cfg.MTU != def.MTU, cfg.MTU)
	set("overhead", cfg.Overhead != def.Overhead, cfg.Overhead)
	set("accounting", cfg.HPCC, "hpcc")
	set("buffer", cfg.Buffer != def.Buffer, int64(cfg.Buffer))
	set("reserve", cfg.Reserve != def.Reserve, int64(cfg.Reserve))
	set("headroom", cfg.Headroom > 0, int64(cfg.Headroom))
	set("alpha", cfg.AlphaShift != def.AlphaShift, fmt.Sprintf("1/%d", 1<<cfg.AlphaShift))
	set("resume-offset", cfg.ResumeOffset != def.ResumeOffset, int64(cfg.ResumeOffset))
	set("xoff", cfg.Xoff > 0, int64(cfg.Xoff))
	set("xon", cfg.Xon > 0, int64(cfg.Xon))
	var lossless []string
	for p := range 8 {
		if cfg.Lossless>>p&1 != 0 {
			lossless = append(lossless, fmt.Sprint(p))
		}
	}
	set("lossless", cfg.Lossless != def.Lossless, "["+strings.Join(lossless, ", ")+"]")
	set("pfc", cfg.NoPFC, "off")
	pause := any(cfg.PauseTime)
	if cfg.PauseTime == 0 {
		pause = "forever"
	}
	set("pause-time", cfg.PauseTime != def.PauseTime, pause)
	switch {
	case cfg.Congestion == nil:
		set("congestion-control", true, "none")
	case cfg.Congestion.Traits().Name != def.Congestion.Traits().Name:
		set("congestion-control", true, cfg.Congestion.Traits().Name)
	}
	if len(cfg.ECN) == 0 {
		set("ecn", true, "off")
	} else {
		b.WriteString("  ecn:\n")
		for _, e := range cfg.ECN {
			fmt.Fprintf(&b, "    - {rate: %d, kmin: %d, kmax: %d, pmax: %g}\n", int64(e.Rate), int64(e.Kmin), int64(e.Kmax), e.Pmax)
		}
	}
	return "fabric:\n" + b.String()
}
