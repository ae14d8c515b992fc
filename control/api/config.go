package api

import (
	"fmt"
	"net"
	"time"

	"github.com/weft-telemetry/weft/control/oidc"
	"github.com/weft-telemetry/weft/model"
)

// Config is the API's listen address, its callers, and its limits.
type Config struct {
	Listen  string      `yaml:"listen"`
	TLSCert string      `yaml:"tls_cert"` // PEM files; both or none
	TLSKey  string      `yaml:"tls_key"`
	Token   string      `yaml:"token"` // operator token; empty: authentication disabled
	Users   []User      `yaml:"users"`
	OIDC    oidc.Config `yaml:"oidc"` // the zero Config: no tokens of a provider
	Tenants []Tenant    `yaml:"tenants"`
	// Hosts are the server's DNS names. Requests for an IP address or localhost are
	// always accepted; requests for any other name are refused, which prevents DNS
	// rebinding.
	Hosts []string `yaml:"hosts"`
	Pprof string   `yaml:"pprof"` // loopback address of the Go profiler; empty: disabled

	// HealthListen is another address, of /healthz, /readyz and /metrics alone, with
	// connections of its own; empty: they are on Listen alone.
	HealthListen string `yaml:"health_listen"`

	AuditFile    string      `yaml:"audit_file"` // of writes; empty: none
	AuditMaxSize model.Bytes `yaml:"audit_max_size"`

	MaxConnections int `yaml:"max_connections"` // open connections, idle ones included
	// ReservedConnections are those of MaxConnections that only callers with a valid
	// token may use.
	ReservedConnections int `yaml:"reserved_connections"`
	AddressConnections  int `yaml:"address_connections"` // of one client address, without a valid token
	TokenFailures       int `yaml:"token_failures"`      // wrong tokens of an address before checks are delayed

	MaxRequests int           `yaml:"max_requests"` // concurrent requests, event streams excluded
	MaxClients  int           `yaml:"max_clients"`  // concurrent event streams
	MaxBody     int64         `yaml:"max_body"`     // bytes
	MaxHeader   int           `yaml:"max_header"`   // bytes
	MaxRange    time.Duration `yaml:"max_range"`
	ScanBudget  int           `yaml:"scan_budget"` // records that one response may read

	RequestTimeout time.Duration `yaml:"request_timeout"` // to compute a response
	ReadTimeout    time.Duration `yaml:"read_timeout"`    // to receive a request
	WriteTimeout   time.Duration `yaml:"write_timeout"`   // to send a response or one event
	StateInterval  time.Duration `yaml:"state_interval"`  // between state events
	HealthInterval time.Duration `yaml:"health_interval"`
	Heartbeat      time.Duration `yaml:"heartbeat"`
}

// DefaultConfig listens on loopback without authentication.
func DefaultConfig() Config {
	return Config{
		Listen:         "127.0.0.1:8080",
		AuditMaxSize:   64 * model.MiB,
		MaxConnections: 1024, ReservedConnections: 64, AddressConnections: 256, TokenFailures: 10,
		MaxRequests: 256, MaxClients: 64, MaxBody: 64 << 10, MaxHeader: 16 << 10,
		MaxRange: 31 * 24 * time.Hour, ScanBudget: 2000,
		RequestTimeout: 10 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		StateInterval: 200 * time.Millisecond, HealthInterval: time.Second, Heartbeat: 15 * time.Second,
	}
}

// CheckConfig returns the first error in a config, as New does, and reads its
// certificate.
func CheckConfig(c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	return (&Server{cfg: c}).Reload(&c)
}

// check returns the first invalid setting as an error.
func (c *Config) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max_connections", int64(c.MaxConnections)},
		{"address_connections", int64(c.AddressConnections)},
		{"token_failures", int64(c.TokenFailures)},
		{"audit_max_size", int64(c.AuditMaxSize)},
		{"max_requests", int64(c.MaxRequests)},
		{"max_clients", int64(c.MaxClients)},
		{"max_body", c.MaxBody},
		{"max_header", int64(c.MaxHeader)},
		{"max_range", int64(c.MaxRange)},
		{"scan_budget", int64(c.ScanBudget)},
		{"request_timeout", int64(c.RequestTimeout)},
		{"read_timeout", int64(c.ReadTimeout)},
		{"write_timeout", int64(c.WriteTimeout)},
		{"state_interval", int64(c.StateInterval)},
		{"health_interval", int64(c.HealthInterval)},
		{"heartbeat", int64(c.Heartbeat)},
	} {
		if n.value <= 0 {
			return fmt.Errorf("api: %s %d, want more than 0", n.name, n.value)
		}
	}
	if c.ReservedConnections < 0 || c.ReservedConnections >= c.MaxConnections {
		return fmt.Errorf("api: reserved_connections %d, want 0 to less than max_connections %d", c.ReservedConnections,
			c.MaxConnections)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return fmt.Errorf("api: tls_cert %q and tls_key %q, want both or none", c.TLSCert, c.TLSKey)
	}
	if c.Pprof != "" && !isLoopback(c.Pprof) {
		return fmt.Errorf("api: pprof %q, want a loopback address such as 127.0.0.1:6060: "+
			"profiles expose memory contents", c.Pprof)
	}
	if c.HealthListen != "" {
		if _, _, err := net.SplitHostPort(c.HealthListen); err != nil {
			return fmt.Errorf("api: health_listen %q, want ADDRESS:PORT", c.HealthListen)
		}
		if c.Token == "" && !isLoopback(c.HealthListen) {
			return fmt.Errorf("api: health_listen %s is not a loopback address, want a token with it", c.HealthListen)
		}
	}
	return nil
}

// isLoopback reports whether an address is reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
