package clickhouse

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/store"
)

// Config describes a Store.
type Config struct {
	Addresses      []string // host:port of servers, of which the first that answers is used
	Database       string   // is made if it does not exist
	Cluster        string   // of servers that share the tables, by its name in their configuration; empty: none
	User, Password string
	TLS            *tls.Config // nil: none
	Retention      store.Retention
	MaxPage        int           // records of a page, at most
	MaxFlows       int           // flows that a query with a filter may read
	Timeout        time.Duration // of a connection, and of one request
}

// DefaultConfig is a store on this machine.
func DefaultConfig() Config {
	return Config{
		Addresses: []string{"127.0.0.1:9000"}, Database: "weft", User: "default", Retention: store.DefaultRetention(),
		MaxPage: 1000, MaxFlows: 1_000_000, Timeout: 30 * time.Second,
	}
}

// validName is of databases and clusters: they are part of statements.
var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Check returns an error for an invalid configuration.
func (c *Config) Check() error {
	switch {
	case len(c.Addresses) == 0 || slices.Contains(c.Addresses, ""):
		return errors.New("clickhouse: an address is empty, want host:port")
	case !validName.MatchString(c.Database):
		return fmt.Errorf("clickhouse: database %q, want letters, digits and _", c.Database)
	case c.Cluster != "" && !validName.MatchString(c.Cluster):
		return fmt.Errorf("clickhouse: cluster %q, want letters, digits and _", c.Cluster)
	case c.MaxPage < 1 || c.MaxFlows < 1 || c.Timeout <= 0:
		return fmt.Errorf("clickhouse: pages of %d, %d flows, timeout %v; want at least 1, 1, and more than 0", c.MaxPage, c.MaxFlows, c.Timeout)
	}
	return c.Retention.Check()
}

// Scheme begins the address of a store in ClickHouse, where a file could be named too.
const Scheme = "clickhouse://"

// IsURL reports whether the name of a store is the address of one in ClickHouse.
func IsURL(s string) bool { return strings.HasPrefix(s, Scheme) }

// ParseURL parses clickhouse://user@host:9000,other:9000/database. With ?secure=true
// the connection has TLS; &cluster=NAME has tables on all servers of a cluster. A password is no part of it: addresses are logged.
func ParseURL(s string) (Config, error) {
	c := DefaultConfig()
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return c, fmt.Errorf("clickhouse: address: %w", errors.Unwrap(err)) // without what may be a password
	case u.Scheme+"://" != Scheme || u.Host == "":
		return c, errors.New("clickhouse: address, want clickhouse://host:9000/database")
	}
	c.Addresses = strings.Split(u.Host, ",")
	if db := strings.Trim(u.Path, "/"); db != "" {
		c.Database = db
	}
	if u.User != nil {
		if _, given := u.User.Password(); given {
			return c, errors.New("clickhouse: the address has a password, want it as store.password (WEFT_STORE_PASSWORD)")
		}
		c.User = u.User.Username()
	}
	for key, values := range u.Query() {
		switch {
		case key == "cluster" && len(values) == 1:
			c.Cluster = values[0]
		case key == "secure" && len(values) == 1 && values[0] == "true":
			c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		case key != "secure" || len(values) != 1 || values[0] != "false":
			return c, fmt.Errorf("clickhouse: parameter %s, want secure=true or false, or cluster=NAME", key)
		}
	}
	return c, c.Check()
}
