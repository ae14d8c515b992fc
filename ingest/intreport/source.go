package intreport

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Port is the default UDP port of INT reports.
const Port = 32766

// Source is INT telemetry reports.
var Source = source.Source{
	Kind: "int", Title: "INT reports", Proto: model.UDP,
	NewConfig: func() source.Config {
		d := DefaultConfig()
		return &SourceConfig{TimeUnit: d.Tick, DepthUnit: d.Cell, FullUtilization: int(d.FullUtilization), Limits: source.Limits{Rate: source.DefaultRate}}
	},
	SwitchKeys: []source.SwitchKey{{Key: "int", Want: "its node id in INT reports", Ok: func(text string) bool {
		_, err := strconv.ParseUint(text, 0, 32)
		return err == nil
	}}},
	Identify: func(f *source.Fabric) (map[model.NodeID]string, error) {
		nodes, err := nodeIDs(f)
		list := map[model.NodeID]string{}
		for n, id := range nodes {
			list[id] = strconv.FormatUint(uint64(n), 10)
		}
		return list, err
	},
}

// nodeIDs are the switches by their node ids in reports: those of the
// configuration, and for other switches Weft's ids as far as they are free.
func nodeIDs(f *source.Fabric) (map[uint32]model.NodeID, error) {
	nodes, names := map[uint32]model.NodeID{}, map[uint32]string{}
	for _, s := range f.Switches {
		text, given := s.Values["int"]
		if !given {
			continue
		}
		n, _ := strconv.ParseUint(text, 0, 32) // checked when it was set
		if other, taken := names[uint32(n)]; taken {
			return nil, fmt.Errorf("switches: %s and %s have node id %d in INT reports, want different ones", other, s.Name, n)
		}
		nodes[uint32(n)], names[uint32(n)] = s.ID, s.Name
	}
	for _, s := range f.Switches {
		_, given := s.Values["int"]
		if _, taken := nodes[uint32(s.ID)]; !given && !taken {
			nodes[uint32(s.ID)] = s.ID
		}
	}
	return nodes, nil
}

// SourceConfig is the section int of a service's configuration.
type SourceConfig struct {
	Listen          netip.AddrPort // the zero value: disabled
	TimeUnit        time.Duration
	DepthUnit       model.Bytes
	FullUtilization int
	Limits          source.Limits
}

// Settings is part of source.Config.
func (c *SourceConfig) Settings() []source.Setting {
	return append([]source.Setting{
		{
			Key: "listen", About: "UDP address that receives INT telemetry reports 2.0, such as 127.0.0.1:32766; empty: disabled",
			Value: &c.Listen,
		},
		{Key: "time_unit", About: "unit of times and latencies in INT reports", Value: &c.TimeUnit},
		{Key: "depth_unit", About: "unit of queue depths in INT reports", Value: &c.DepthUnit},
		{Key: "full_utilization", About: "utilization value of a fully loaded link in INT reports", Value: &c.FullUtilization},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *SourceConfig) Check() error {
	if c.TimeUnit <= 0 || c.DepthUnit <= 0 || c.FullUtilization <= 0 || c.FullUtilization > math.MaxUint32 {
		return source.Errorf("int", "time_unit %v, depth_unit %v, full_utilization %d; want all above 0, and full_utilization of 32 bits",
			c.TimeUnit, c.DepthUnit, c.FullUtilization)
	}
	return c.Limits.Check("int")
}

// Sources is part of source.Adapter.
func (c *SourceConfig) Sources() source.Limits { return c.Limits }

// Address is part of source.Config.
func (c *SourceConfig) Address() string { return source.Address(c.Listen) }

// Ports is part of source.Config.
func (c *SourceConfig) Ports() []uint16 {
	if !c.Listen.IsValid() {
		return []uint16{Port}
	}
	return []uint16{Port, c.Listen.Port()}
}

// Clone is part of source.Config.
func (c *SourceConfig) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *SourceConfig) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	nodes, err := nodeIDs(f)
	if err != nil {
		return nil, err
	}
	cfg := Config{Tick: c.TimeUnit, Cell: c.DepthUnit, FullUtilization: uint32(c.FullUtilization)}
	cfg.Switch = func(n uint32) (model.NodeID, bool) {
		id, ok := nodes[n]
		return id, ok
	}
	switches := map[model.NodeID]*source.Switch{}
	for i := range f.Switches {
		switches[f.Switches[i].ID] = &f.Switches[i]
	}
	cfg.HasPort = func(sw model.NodeID, p model.PortID) bool { return int(p) <= switches[sw].Ports }
	cfg.Sends = func(sw model.NodeID, from netip.Addr) bool { return switches[sw].SendsFrom(from) }
	d, err := NewDecoder(cfg, Output{Label: out.Label, Mirror: out.Mirror, Keyed: out.Keyed, Refused: out.Refused})
	return sourceDecoder{d}, err
}

type sourceDecoder struct{ *Decoder }

// Decode is part of source.Decoder.
func (d sourceDecoder) Decode(at model.Time, from netip.AddrPort, datagram []byte) bool {
	before := d.stats.Used
	d.HandleDatagram(at, from.Addr().Unmap(), datagram)
	return d.stats.Used > before
}

// Counters is part of source.Decoder.
func (d sourceDecoder) Counters() source.Counters {
	s := &d.stats
	return source.Counters{Unit: "reports", In: s.Reports, Out: s.Used, Losses: []source.Loss{
		{Reason: source.QueueFull, About: "datagrams dropped by the kernel's socket buffer"},
		{Reason: "missing", About: "datagrams missing by sequence number", Count: s.Missing},
		{Reason: "malformed", About: "datagrams", Count: s.Malformed},
		{Reason: translate.AddressNotAllowed.String(), About: "datagrams", Count: s.Denied},
		{Reason: "unknown node", About: "no switch has the node id", Count: s.Unknown},
		{Reason: "unknown port", About: "the switch has no such port", Count: s.UnknownPort},
		{Reason: "other type", About: "not INT", Count: s.Other, Expected: true},
		{Reason: "empty", About: "neither port state nor packet", Count: s.Empty},
	}}
}

// OpenSocket is part of source.Adapter.
func (c *SourceConfig) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return source.ListenUDP(c.Listen, d, g)
}
