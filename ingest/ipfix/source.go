// Package ipfix receives NetFlow version 9 and IPFIX: records of flows, from switches
// and hosts that export nothing finer. It counts what never arrived. Layout:
// docs/formats/ipfix.md. Manual: docs/sources.md.
package ipfix

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/ipfix"
)

// Source is NetFlow version 9 and IPFIX.
var Source = source.Source{
	Kind: "ipfix", Title: "NetFlow and IPFIX messages", Proto: model.UDP, HasCounters: true,
	NewConfig: func() source.Config { return &Config{Limits: source.Limits{Rate: source.DefaultRate}} },
}

// Config is the section ipfix of a service's configuration.
type Config struct {
	Listen netip.AddrPort // the zero value: disabled
	Limits source.Limits
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	return append([]source.Setting{
		{Key: "listen", About: "UDP address that receives NetFlow version 9 and IPFIX, such as 127.0.0.1:4739; empty: disabled", Value: &c.Listen},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *Config) Check() error { return c.Limits.Check("ipfix") }

// Sources is part of source.Adapter.
func (c *Config) Sources() source.Limits { return c.Limits }

// Address is part of source.Config.
func (c *Config) Address() string { return source.Address(c.Listen) }

// customary are ports of NetFlow, which has none of its own.
var customary = []uint16{ipfix.Port, 2055, 9995}

// Ports is part of source.Config.
func (c *Config) Ports() []uint16 {
	if !c.Listen.IsValid() {
		return customary
	}
	return append(customary[:len(customary):len(customary)], c.Listen.Port())
}

// Clone is part of source.Config.
func (c *Config) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, fmt.Errorf("ipfix: no identity table, want that of the fabric")
	}
	return newDecoder(f, out), nil
}

// OpenSocket is part of source.Adapter.
func (c *Config) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return source.ListenUDP(c.Listen, d, g)
}

// Counters is part of source.Decoder.
func (d *decoder) Counters() source.Counters {
	s := &d.stats
	return source.Counters{Unit: "records", In: s.records, Out: s.used, Losses: []source.Loss{
		{Reason: source.QueueFull, About: "messages dropped by the kernel's socket buffer"},
		{Reason: "missing", About: "by sequence number: messages of NetFlow, records of IPFIX", Count: s.missing},
		{Reason: "no template", About: "sets of data before their template, which exporters repeat", Count: s.noTemplate},
		{Reason: "malformed", About: "messages, or sets of them", Count: s.malformed},
		{Reason: translate.AddressNotAllowed.String(), About: "messages", Count: s.denied},
		{Reason: "unknown exporter", About: "messages: no switch has the address", Count: s.unknownExporter},
		{Reason: "too many domains", About: "messages", Count: s.domains},
		{Reason: "clock", About: "records of a flow that ends before it starts, or long ago", Count: s.clock},
		{Reason: "other record", About: "of no flow, or without counters", Count: s.other, Expected: true},
		{Reason: "egress", About: "records of packets that leave: those that arrive count", Count: s.egress, Expected: true},
	}}
}
