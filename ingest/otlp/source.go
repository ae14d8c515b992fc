// Package otlp receives metrics by the OpenTelemetry protocol, over gRPC and HTTP:
// the high-frequency telemetry of SONiC, which exports counters of ports, queues and
// priority groups by their SAI numbers. Manual: docs/sources.md.
package otlp

import (
	"errors"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Source is OTLP metrics.
var Source = source.Source{
	Kind: "otlp", Title: "OTLP metrics", Proto: model.UDP, HasCounters: true, Streams: true,
	NewConfig: func() source.Config {
		return &Config{MinInterval: 10 * time.Millisecond, Limits: source.Limits{Rate: source.DefaultRate}}
	},
}

// Config is the section otlp of a service's configuration.
type Config struct {
	Listen      netip.AddrPort // of gRPC; the zero value: none
	HTTPListen  netip.AddrPort // of HTTP; the zero value: none
	TLSCert     string         // file; empty: no TLS
	TLSKey      string         // file
	MinInterval time.Duration
	Limits      source.Limits
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	return append([]source.Setting{
		{Key: "listen", About: "TCP address that receives OTLP metrics by gRPC, such as 127.0.0.1:4317; empty: disabled", Value: &c.Listen},
		{Key: "http_listen", About: "another TCP address, of OTLP by HTTP (POST /v1/metrics), such as 127.0.0.1:4318; needs listen; empty: none", Value: &c.HTTPListen},
		{Key: "tls_cert", About: "file of the certificate of both; empty: no TLS", Value: &c.TLSCert},
		{Key: "tls_key", About: "file of its key", Value: &c.TLSKey},
		{Key: "min_interval", About: "shortest interval of a reading; counters that come more often are summed up", Value: &c.MinInterval},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *Config) Check() error {
	switch {
	case c.HTTPListen.IsValid() && !c.Listen.IsValid():
		return source.Errorf("otlp.http_listen", "%v without otlp.listen, want both", c.HTTPListen)
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return source.Errorf("otlp.tls_cert", "%q with tls_key %q, want both or none", c.TLSCert, c.TLSKey)
	case c.MinInterval < time.Millisecond || c.MinInterval > time.Minute:
		return source.Errorf("otlp.min_interval", "%v, want 1ms to 1m", c.MinInterval)
	}
	return c.Limits.Check("otlp")
}

// Sources is part of source.Adapter.
func (c *Config) Sources() source.Limits { return c.Limits }

// Address is part of source.Config.
func (c *Config) Address() string { return source.Address(c.Listen) }

// Ports is part of source.Config. OTLP is TCP: captures of other tools have no
// datagrams of it.
func (c *Config) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *Config) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, errors.New("otlp: no identity table, want that of the fabric")
	}
	return newDecoder(f, out, c.MinInterval), nil
}

// OpenSocket is part of source.Adapter.
func (c *Config) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return listen(c, d, g)
}
