package gnmi

import (
	"errors"
	"net/netip"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// DialOut is gNMI of switches that connect to the collector: SONiC's gNMIDialOut service. They
// decide what they send, and how often.
var DialOut = source.Source{
	Kind: "dialout", Title: "gNMI dial-out", Proto: model.UDP, HasCounters: true, Streams: true,
	NewConfig: func() source.Config {
		return &DialOutConfig{Limits: source.Limits{Rate: source.DefaultRate}}
	},
}

// DialOutConfig is the section dialout of a service's configuration.
type DialOutConfig struct {
	Listen  netip.AddrPort // the zero value: disabled
	TLSCert string         // file; empty: no TLS
	TLSKey  string         // file
	Limits  source.Limits
}

// Settings is part of source.Config.
func (c *DialOutConfig) Settings() []source.Setting {
	return append([]source.Setting{
		{Key: "listen", About: "TCP address that SONiC switches publish gNMI updates to, such as 0.0.0.0:8081; empty: disabled", Value: &c.Listen},
		{Key: "tls_cert", About: "file of the certificate, which SONiC's client needs; empty: no TLS", Value: &c.TLSCert},
		{Key: "tls_key", About: "file of its key", Value: &c.TLSKey},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *DialOutConfig) Check() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return source.Errorf("dialout.tls_cert", "%q with tls_key %q, want both or none", c.TLSCert, c.TLSKey)
	}
	return c.Limits.Check("dialout")
}

// Address is part of source.Config.
func (c *DialOutConfig) Address() string { return source.Address(c.Listen) }

// Ports is part of source.Config. Streams are TCP: captures of other tools have no datagrams of them.
func (c *DialOutConfig) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *DialOutConfig) Clone() source.Config { n := *c; return &n }

// Sources is part of source.Adapter.
func (c *DialOutConfig) Sources() source.Limits { return c.Limits }

// NewDecoder is part of source.Adapter. A switch is known by the address that its stream comes from.
func (c *DialOutConfig) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, errors.New("dialout: no identity table, want that of the fabric")
	}
	return newDecoder(f, out), nil
}

// OpenSocket is part of source.Adapter.
func (c *DialOutConfig) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	return listenDialOut(c, d, g)
}
