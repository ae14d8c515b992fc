// Package bmp receives the BGP Monitoring Protocol, version 3 (RFC 7854, Loc-RIB of RFC 9069):
// switches connect, and send the routes that they have of each peer. Messages are decoded by
// gobgp's packet library. What routes mean for forwarding is analyze/routeview's work.
// Manual: docs/sources.md.
package bmp

import (
	"errors"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Source is BMP.
var Source = source.Source{
	Kind: "bmp", Title: "BMP messages", Proto: model.UDP, Streams: true, HasRoutes: true,
	NewConfig: func() source.Config {
		return &Config{Settle: 5 * time.Second, Limits: source.Limits{Rate: source.DefaultRate}}
	},
}

// Config is the section bmp of a service's configuration.
type Config struct {
	Listen netip.AddrPort // the zero value: disabled
	Settle time.Duration
	Limits source.Limits
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	list := append([]source.Setting{
		{Key: "listen", About: "TCP address that switches send BMP to, such as 0.0.0.0:11019; empty: disabled", Value: &c.Listen},
		{Key: "settle", About: "how long routes must differ from the intended ones to be drift; routing converges meanwhile", Value: &c.Settle},
	}, c.Limits.Settings()...)
	list[len(list)-1].About = "rate limit of each source address in messages/s, 0 for none; a switch beyond it is disconnected, and sends all its routes again"
	return list
}

// Check is part of source.Config.
func (c *Config) Check() error {
	if c.Settle < 10*time.Millisecond || c.Settle > time.Hour {
		return source.Errorf("bmp.settle", "%v, want 10ms to 1h", c.Settle)
	}
	return c.Limits.Check("bmp")
}

// Sources is part of source.Adapter.
func (c *Config) Sources() source.Limits { return c.Limits }

// Address is part of source.Config.
func (c *Config) Address() string { return source.Address(c.Listen) }

// Ports is part of source.Config. BMP is TCP: captures of other tools have no datagrams of it.
func (c *Config) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *Config) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, errors.New("bmp: no identity table, want that of the fabric")
	}
	return newDecoder(f, out), nil
}

// OpenSocket is part of source.Adapter.
func (c *Config) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return listen(c.Listen, d, g)
}
