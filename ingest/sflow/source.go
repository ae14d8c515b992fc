// Package sflow receives sFlow version 5: packet samples with their port pair, readings
// of interface counters, and notifications of dropped packets. It counts what
// never arrived, and believes no counter that a link could not have
// counted. Layout: docs/formats/sflow.md. Manual: docs/sources.md.
package sflow

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/reading"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// Source is sFlow.
var Source = source.Source{
	Kind: "sflow", Title: "sFlow datagrams", Proto: model.UDP, HasCounters: true,
	NewConfig:  func() source.Config { return &Config{Limits: source.Limits{Rate: source.DefaultRate}} },
	SwitchKeys: []source.SwitchKey{source.IfIndexKey},
}

// Config is the section sflow of a service's configuration.
type Config struct {
	Listen netip.AddrPort // the zero value: disabled
	Limits source.Limits
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	return append([]source.Setting{
		{Key: "listen", About: "UDP address that receives sFlow version 5, such as 127.0.0.1:6343; empty: disabled", Value: &c.Listen},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *Config) Check() error { return c.Limits.Check("sflow") }

// Sources is part of source.Adapter.
func (c *Config) Sources() source.Limits { return c.Limits }

// Address is part of source.Config.
func (c *Config) Address() string { return source.Address(c.Listen) }

// Ports is part of source.Config.
func (c *Config) Ports() []uint16 {
	if !c.Listen.IsValid() {
		return []uint16{sflow.Port}
	}
	return []uint16{sflow.Port, c.Listen.Port()}
}

// Clone is part of source.Config.
func (c *Config) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, fmt.Errorf("sflow: no identity table, want that of the fabric")
	}
	return newDecoder(f, out), nil
}

// OpenSocket is part of source.Adapter.
func (c *Config) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return source.ListenUDP(c.Listen, d, g)
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	s, r, names := &d.stats, d.readings.Stats(), d.names.Stats()
	return source.Counters{Unit: "samples", In: s.samples, Out: s.used, Losses: []source.Loss{
		{Reason: source.QueueFull, About: "datagrams dropped by the kernel's socket buffer"},
		{Reason: "missing", About: "datagrams missing by sequence number", Count: s.missing},
		{Reason: "lost by agent", About: "samples that agents report to have discarded", Count: s.lostByAgent},
		{Reason: "malformed", About: "datagrams, or samples of them", Count: s.malformed},
		{Reason: translate.AddressNotAllowed.String(), About: "datagrams", Count: s.denied},
		{Reason: "unknown agent", About: "datagrams: no switch has the agent's address", Count: s.unknownAgent},
		{Reason: "unknown port", About: "ifIndex that nothing is known of", Count: s.unknownPort},
		{Reason: "too many sub-agents", About: "datagrams", Count: s.subAgents},
		{Reason: "late", About: "counters not newer than those before", Count: r[reading.Late]},
		{Reason: "reset", About: "counters of a switch that restarted, or was cleared", Count: s.resets + r[reading.Reset]},
		{Reason: "implausible", About: "more than the link carries", Count: r[reading.Implausible]},
		{Reason: "clock", About: "uptimes that disagree with this machine's clock", Count: s.clock},
		{Reason: "names refused", About: "interfaces against the configuration, or too many", Count: names.Conflicts + names.Full},
		{Reason: "other interface", About: "not a port of the topology", Count: s.otherInterface, Expected: true},
		{Reason: "other format", About: "of no use here", Count: s.otherFormat, Expected: true},
	}}
}
