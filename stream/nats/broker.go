package nats

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"github.com/weft-telemetry/weft/model"
)

// BrokerConfig describes an embedded NATS server with JetStream.
type BrokerConfig struct {
	Listen   string // host:port; port 0 is chosen
	Dir      string // of its files
	MaxStore model.Bytes
	// Cluster is where it listens for other servers, and Routes are theirs; both empty:
	// it is alone. Name is then unique among them.
	Name, Cluster   string
	Routes          []string
	TLSCert, TLSKey string // both empty: no TLS
	TLSCA           string // of clients; empty: none is asked for
	Token           string // that clients need; empty: none
}

// Broker is an embedded NATS server.
type Broker struct{ server *server.Server }

// startTimeout is how long a server may need to read its files.
const startTimeout = 30 * time.Second

// StartBroker starts a server.
func StartBroker(cfg BrokerConfig) (*Broker, error) {
	if cfg.Dir == "" {
		return nil, errors.New("nats: the broker has no directory, want one")
	}
	host, port, err := splitAddress(cfg.Listen)
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: cfg.Name, Host: host, Port: port, NoSigs: true, NoLog: true, DontListen: false,
		JetStream: true, StoreDir: cfg.Dir, JetStreamMaxStore: int64(cfg.MaxStore), JetStreamMaxMemory: int64(64 * model.MiB),
		Authorization: cfg.Token,
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if cfg.Cluster != "" {
		if o.Cluster.Host, o.Cluster.Port, err = splitAddress(cfg.Cluster); err != nil {
			return nil, err
		}
		if o.Cluster.Port == 0 {
			o.Cluster.Port = server.RANDOM_PORT
		}
		o.Cluster.Name = "weft"
		if o.Routes, err = routes(cfg.Routes, cfg.Token); err != nil {
			return nil, err
		}
		if cfg.Token != "" {
			o.Cluster.Username, o.Cluster.Password = routeUser, cfg.Token
		}
	}
	if cfg.TLSCert != "" {
		tc, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cfg.TLSCert, KeyFile: cfg.TLSKey, CaFile: cfg.TLSCA, Verify: cfg.TLSCA != ""})
		if err != nil {
			return nil, fmt.Errorf("nats: TLS of the broker: %w", err)
		}
		o.TLSConfig, o.TLS, o.TLSVerify, o.TLSTimeout = tc, true, cfg.TLSCA != "", 5
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("nats: broker: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, fmt.Errorf("nats: the broker does not listen on %s after %v; is the port free, is %s writable?", cfg.Listen, startTimeout, cfg.Dir)
	}
	return &Broker{s}, nil
}

// routeUser is the name by which servers with a token connect to each other.
const routeUser = "weft"

// routes are the URLs of other servers, each nats://host:port or host:port. One that is the
// server's own is ignored by it.
func routes(list []string, token string) (urls []*url.URL, err error) {
	if len(list) == 0 { // the first of a cluster: JetStream starts with a route only
		return []*url.URL{{}}, nil
	}
	for _, text := range list {
		host, port, err := splitAddress(strings.TrimPrefix(text, "nats://"))
		if err != nil {
			return nil, fmt.Errorf("nats: route %s: %w", text, err)
		}
		u := &url.URL{Scheme: "nats-route", Host: net.JoinHostPort(host, strconv.Itoa(port))}
		if token != "" {
			u.User = url.UserPassword(routeUser, token)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// URL is where clients connect.
func (b *Broker) URL() string { return b.server.ClientURL() }

// Route is where other servers of its cluster connect; empty if it is alone.
func (b *Broker) Route() string {
	if a := b.server.ClusterAddr(); a != nil {
		return "nats://" + a.String()
	}
	return ""
}

// Close stops the server. Its files stay.
func (b *Broker) Close() error {
	b.server.Shutdown()
	b.server.WaitForShutdown()
	return nil
}

// Access is how to connect to brokers.
type Access struct {
	URL         string // or several, with commas between them
	Credentials string // file of a user's JWT and key; empty: none
	Token       string
	TLSCA       string // of the brokers; empty: the system's
	TLSCert     string // of this client, and TLSKey; both empty: none
	TLSKey      string
	Name        string // shown by the broker
}

// Connect connects to brokers, and again whenever the connection is lost.
func Connect(a Access) (*client.Conn, error) {
	o := []client.Option{
		client.Name(a.Name), client.MaxReconnects(-1), client.ReconnectWait(100 * time.Millisecond),
		client.ReconnectJitter(50*time.Millisecond, 100*time.Millisecond),
		client.ReconnectBufSize(-1), // what is sent while the connection is lost fails, and is repeated
		client.PingInterval(2 * time.Second), client.MaxPingsOutstanding(2),
	}
	if a.Credentials != "" {
		o = append(o, client.UserCredentials(a.Credentials))
	}
	if a.Token != "" {
		o = append(o, client.Token(a.Token))
	}
	if a.TLSCA != "" {
		o = append(o, client.RootCAs(a.TLSCA))
	}
	if a.TLSCert != "" {
		o = append(o, client.ClientCert(a.TLSCert, a.TLSKey))
	}
	c, err := client.Connect(a.URL, o...)
	if err != nil {
		return nil, fmt.Errorf("nats: connect to %s: %w", a.URL, err)
	}
	return c, nil
}
