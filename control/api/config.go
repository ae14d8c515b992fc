package api

import (
	"fmt"
	"net"
	"time"
)

// Config says where the API listens, who may ask, and how much.
type Config struct {
	Listen  string   `yaml:"listen"`
	TLSCert string   `yaml:"tls_cert"` // PEM files; both or none
	TLSKey  string   `yaml:"tls_key"`
	Token   string   `yaml:"token"` // the operator's; empty: everybody is the operator
	Tenants []Tenant `yaml:"tenants"`
	// Hosts are names, beside addresses and localhost, that the server is asked
	// by. A request by another name is refused: a page elsewhere may have made a
	// browser believe that the name is this machine.
	Hosts []string `yaml:"hosts"`
	Pprof string   `yaml:"pprof"` // loopback address of the Go profiler; empty: none

	MaxConnections int           `yaml:"max_connections"` // open at one time, also of those that ask nothing
	MaxRequests    int           `yaml:"max_requests"`    // at one time, without event streams
	MaxClients     int           `yaml:"max_clients"`     // withTrace event streams
	MaxBody        int64         `yaml:"max_body"`        // bytes
	MaxHeader      int           `yaml:"max_header"`      // bytes
	MaxRange       time.Duration `yaml:"max_range"`
	ScanBudget     int           `yaml:"scan_budget"` // records that one answer may read

	RequestTimeout time.Duration `yaml:"request_timeout"` // for an answer to be made
	ReadTimeout    time.Duration `yaml:"read_timeout"`    // for a request to arrive
	WriteTimeout   time.Duration `yaml:"write_timeout"`   // for an answer, or one event, to be taken
	StateInterval  time.Duration `yaml:"state_interval"`  // between state events
	HealthInterval time.Duration `yaml:"health_interval"`
	Heartbeat      time.Duration `yaml:"heartbeat"`
}

// DefaultConfig listens on loopback, for everybody there.
func DefaultConfig() Config {
	return Config{
		Listen:         "127.0.0.1:8080",
		MaxConnections: 1024,
		MaxRequests:    256, MaxClients: 64, MaxBody: 64 << 10, MaxHeader: 16 << 10,
		MaxRange: 31 * 24 * time.Hour, ScanBudget: 2000,
		RequestTimeout: 10 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		StateInterval: 200 * time.Millisecond, HealthInterval: time.Second, Heartbeat: 15 * time.Second,
	}
}

// CheckConfig says what is wrong with a config, as New does, and whether its
// certificate can be read.
func CheckConfig(c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	return (&Server{cfg: c}).Reload(&c)
}

// completeFilter says what is wrong with a config.
func (c *Config) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max_connections", int64(c.MaxConnections)},
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
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return fmt.Errorf("api: tls_cert %q and tls_key %q, want both or none", c.TLSCert, c.TLSKey)
	}
	if c.Pprof != "" {
		host, _, err := net.SplitHostPort(c.Pprof)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("api: pprof %q, want an address of loopback such as 127.0.0.1:6060: it shows memory", c.Pprof)
		}
	}
	return nil
}
