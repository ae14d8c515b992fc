// Package gnmi subscribes to the counters of switches by gNMI: it dials each target,
// keeps its stream open, and makes readings of what arrives. SONiC's databases come
// first, OpenConfig second. Manual: docs/sources.md.
package gnmi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Source is gNMI.
var Source = source.Source{
	Kind: "gnmi", Title: "gNMI messages", Proto: model.UDP, HasCounters: true, Dials: true,
	NewConfig: func() source.Config {
		return &Config{Interval: time.Second, Model: SONiC, Subscribe: ByPort, TLS: TLSVerify}
	},
}

// Models of data.
const (
	SONiC      = "sonic"      // SONiC's COUNTERS_DB
	OpenConfig = "openconfig" // OpenConfig's interfaces and qos
)

// How counters of SONiC are subscribed to.
const (
	ByPort  = "port"  // one path for each port and table
	ByTable = "table" // one path for each table, with a wildcard
	ByField = "field" // one path for each counter of each port, where tables break
)

// Values of tls.
const (
	TLSVerify = "verify"
	TLSSkip   = "skip-verify"
	TLSOff    = "off"
)

// Config is the section gnmi of a service's configuration.
type Config struct {
	Targets      []string // NAME=ADDRESS:PORT
	Interval     time.Duration
	Model        string
	Subscribe    string
	TLS          string
	CA           string // file
	Cert, Key    string // files
	Username     string
	PasswordFile string
}

// Settings is part of source.Config.
func (c *Config) Settings() []source.Setting {
	return []source.Setting{
		{Key: "targets", About: "switches to subscribe to, comma-separated: NAME=ADDRESS:PORT with a name of the topology; empty: disabled", Value: &c.Targets},
		{Key: "interval", About: "sample interval of counters", Value: &c.Interval},
		{Key: "model", About: "sonic: COUNTERS_DB of SONiC; openconfig: interfaces and qos", Value: &c.Model},
		{Key: "subscribe", About: "sonic: a path by port, table or field", Value: &c.Subscribe},
		{Key: "tls", About: "verify: TLS with a certificate that ca or the system knows; skip-verify: any certificate; off: no TLS", Value: &c.TLS},
		{Key: "ca", About: "file of the certificate authority of targets; empty: those of the system", Value: &c.CA},
		{Key: "cert", About: "file of the client certificate; empty: none", Value: &c.Cert},
		{Key: "key", About: "file of its key", Value: &c.Key},
		{Key: "username", About: "user of targets; empty: none", Value: &c.Username},
		{Key: "password_file", About: "file of the user's password", Value: &c.PasswordFile},
	}
}

// maxTargets bounds the targets of one process.
const maxTargets = 4096

// Check is part of source.Config.
func (c *Config) Check() error {
	switch {
	case len(c.Targets) > maxTargets:
		return source.Errorf("gnmi.targets", "%d targets, want at most %d", len(c.Targets), maxTargets)
	case c.Interval < 10*time.Millisecond || c.Interval > time.Hour:
		return source.Errorf("gnmi.interval", "%v, want 10ms to 1h", c.Interval)
	case c.Model != SONiC && c.Model != OpenConfig:
		return source.Errorf("gnmi.model", "%q, want %s or %s", c.Model, SONiC, OpenConfig)
	case !slices.Contains([]string{ByPort, ByTable, ByField}, c.Subscribe):
		return source.Errorf("gnmi.subscribe", "%q, want %s, %s or %s", c.Subscribe, ByPort, ByTable, ByField)
	case !slices.Contains([]string{TLSVerify, TLSSkip, TLSOff}, c.TLS):
		return source.Errorf("gnmi.tls", "%q, want %s, %s or %s", c.TLS, TLSVerify, TLSSkip, TLSOff)
	case c.TLS == TLSOff && c.Username != "":
		return source.Errorf("gnmi.username", "given with tls off, which would send the password readable; want tls")
	case (c.Cert == "") != (c.Key == ""):
		return source.Errorf("gnmi.cert", "cert %q with key %q, want both or none", c.Cert, c.Key)
	case (c.Username == "") != (c.PasswordFile == ""):
		return source.Errorf("gnmi.username", "user %q with password_file %q, want both or none", c.Username, c.PasswordFile)
	}
	seen := map[string]bool{}
	for _, one := range c.Targets {
		name, address, err := splitTarget(one)
		if err != nil {
			return source.Errorf("gnmi.targets", "%v", err)
		}
		if seen[name] || seen[address] {
			return source.Errorf("gnmi.targets", "%q names a switch or address that another target has", one)
		}
		seen[name], seen[address] = true, true
	}
	return nil
}

// splitTarget splits NAME=ADDRESS:PORT.
func splitTarget(text string) (name, address string, err error) {
	name, address, found := strings.Cut(text, "=")
	_, port, err := net.SplitHostPort(address)
	if !found || name == "" || err != nil || port == "" {
		return "", "", fmt.Errorf("%q, want NAME=ADDRESS:PORT", text)
	}
	return name, address, nil
}

// Address is part of source.Config: the first target.
func (c *Config) Address() string {
	if len(c.Targets) == 0 {
		return ""
	}
	_, address, _ := splitTarget(c.Targets[0])
	return address
}

// Ports is part of source.Config. Streams of gNMI are encrypted: captures of other
// tools have none.
func (c *Config) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *Config) Clone() source.Config {
	n := *c
	n.Targets = slices.Clone(c.Targets)
	return &n
}

// Sources is part of source.Adapter. Targets send nothing unasked.
func (c *Config) Sources() source.Limits { return source.Limits{} }

// NewDecoder is part of source.Adapter.
func (c *Config) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	if f.Identity == nil {
		return nil, errors.New("gnmi: no identity table, want that of the fabric")
	}
	d := newDecoder(f, out)
	for _, one := range c.Targets {
		name, address, _ := splitTarget(one) // checked
		sw, ok := f.Identity.NodeByName(name)
		if !ok {
			return nil, source.Errorf("gnmi.targets", "%q is not a switch of the topology", name)
		}
		if at, err := netip.ParseAddrPort(address); err == nil {
			d.byTarget[at] = sw
		}
		d.targets = append(d.targets, target{name: name, address: address, node: d.nodes[sw]})
	}
	return d, nil
}

// OpenSocket is part of source.Adapter. It opens none: Run dials.
func (c *Config) OpenSocket(d source.Decoder, _ source.Guard) (source.Listener, error) {
	return newClient(c, d)
}
