package sources

import (
	"net/netip"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// DTA is Direct Telemetry Access, whose reports go to collector memory as they are.
var DTA = source.Source{
	Kind: "dta", Title: "DTA reports", Proto: model.UDP,
	NewConfig: func() source.Config {
		return &DTAConfig{
			Listen:  netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dta.Port),
			Workers: 1, ReceiveBuffer: 32 * model.MiB,
		}
	},
}

// DTAConfig is the section dta of a service's configuration.
type DTAConfig struct {
	Listen        netip.AddrPort
	Workers       int
	Rate          float64
	ReceiveBuffer model.Bytes
	Memory        string
}

// Settings is part of source.Config.
func (c *DTAConfig) Settings() []source.Setting {
	return []source.Setting{
		{Key: "listen", About: "UDP address that receives DTA reports", Value: &c.Listen},
		{Key: "workers", About: "sockets that share the port", Value: &c.Workers},
		{Key: "rate", About: "rate limit in reports/s, 0 for none; excess reports are NACKed to the reporter", Value: &c.Rate},
		{Key: "receive_buffer", About: "kernel receive buffer of each socket", Value: &c.ReceiveBuffer},
		{
			Key: "memory", About: "directory of the memory files that weft query reads; empty: memory of this process",
			Value: &c.Memory,
		},
	}
}

// Check is part of source.Config.
func (c *DTAConfig) Check() error {
	switch {
	case !c.Listen.IsValid():
		return source.Errorf("dta.listen", "none, want ADDRESS:PORT")
	case c.Workers < 1 || c.Workers > 16:
		return source.Errorf("dta.workers", "%d, want 1 to 16", c.Workers)
	case c.Rate != 0 && !(c.Rate >= 1 && c.Rate <= 1e9):
		return source.Errorf("dta.rate", "%v, want 0 (no limit), or 1 to 1e9", c.Rate)
	case c.ReceiveBuffer < 4096 || c.ReceiveBuffer > model.GiB:
		return source.Errorf("dta.receive_buffer", "%v, want 4KiB to 1GiB", c.ReceiveBuffer)
	}
	return nil
}

// Address is part of source.Config.
func (c *DTAConfig) Address() string { return c.Listen.String() }

// Ports is part of source.Config.
func (c *DTAConfig) Ports() []uint16 { return []uint16{dta.Port, c.Listen.Port()} }

// Clone is part of source.Config.
func (c *DTAConfig) Clone() source.Config { n := *c; return &n }
