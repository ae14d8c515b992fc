package sources

import (
	"net/netip"
	"time"

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
			Workers: 1, TimeWindow: 10 * time.Second,
			Limits: source.Limits{Rate: source.DefaultRate},
		}
	},
	SwitchKeys: []source.SwitchKey{source.AddressKey},
}

// RequireMAC is the value of DTAConfig.Require that refuses reports without a MAC.
const RequireMAC = "mac"

// DTAConfig is the section dta of a service's configuration.
type DTAConfig struct {
	Listen         netip.AddrPort
	Workers        int
	Rate           float64
	ReceiveBuffer  model.Bytes // of each socket; 0: as the planned slots need
	Memory         string
	PortMemory     model.Bytes // of the newest states of ports; 0: as the fabric needs
	CounterMemory  model.Bytes // of counters of hosts; 0: as the fabric needs
	PostcardMemory model.Bytes // of postcards of flows; 0: by the fabric's hosts
	Limits         source.Limits
	Keys           string // file
	Require        string // RequireMAC, or empty
	TimeWindow     time.Duration
}

// Settings is part of source.Config.
func (c *DTAConfig) Settings() []source.Setting {
	list := []source.Setting{
		{Key: "listen", About: "UDP address that receives DTA reports", Value: &c.Listen},
		{Key: "workers", About: "sockets that share the port", Value: &c.Workers},
		{Key: "rate", About: "rate limit in reports/s, 0 for none; excess reports are NACKed to the reporter", Value: &c.Rate},
		{Key: "receive_buffer", About: "kernel receive buffer of each socket; 0: as one slot of controller.flows at every switch needs, 32MiB to 256MiB", Value: &c.ReceiveBuffer},
		{
			Key: "memory", About: "directory of the memory files that weft query reads; empty: memory of this process",
			Value: &c.Memory,
		},
		{Key: "port_memory", About: "memory for the newest state of every port, 1MiB to 64GiB; 0: as much as the topology needs", Value: &c.PortMemory},
		{Key: "counter_memory", About: "memory for counters of hosts, 1MiB to 64GiB; 0: as much as the topology needs", Value: &c.CounterMemory},
		{Key: "postcard_memory", About: "memory for postcards of flows, 1MiB to 64GiB; 0: 16KiB for each host, at least 4MiB", Value: &c.PostcardMemory},
		{
			Key: "keys", About: "file of the reporters' keys, which weft keys new writes; a reporter with a key must use it", Reload: true,
			Value: &c.Keys,
		},
		{Key: "require", About: "mac: refuse reports without a MAC from everyone; empty: only from reporters with a key", Value: &c.Require},
		{
			Key: "time_window", About: "how far the send time of a report with a MAC may be from this machine's clock",
			Value: &c.TimeWindow,
		},
	}
	return append(list, c.Limits.Settings()...)
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
	case c.ReceiveBuffer != 0 && (c.ReceiveBuffer < 4096 || c.ReceiveBuffer > model.GiB):
		return source.Errorf("dta.receive_buffer", "%v, want 0 (as the slots need), or 4KiB to 1GiB", c.ReceiveBuffer)
	case c.Require != "" && c.Require != RequireMAC:
		return source.Errorf("dta.require", "%q, want %s or nothing", c.Require, RequireMAC)
	case c.Require == RequireMAC && c.Keys == "":
		return source.Errorf("dta.require", "%s without dta.keys, want the file of the keys; weft keys new writes one", c.Require)
	case c.TimeWindow <= 0 || c.TimeWindow > time.Hour:
		return source.Errorf("dta.time_window", "%v, want above 0 and at most 1h", c.TimeWindow)
	}
	return c.Limits.Check("dta")
}

// Address is part of source.Config.
func (c *DTAConfig) Address() string { return c.Listen.String() }

// Ports is part of source.Config.
func (c *DTAConfig) Ports() []uint16 { return []uint16{dta.Port, c.Listen.Port()} }

// Clone is part of source.Config.
func (c *DTAConfig) Clone() source.Config { n := *c; return &n }
