package api

import "testing"

// NewTestServer makes a server of a fake controller. It and the rest are for
// tests of the client, which cannot be in this package: the client imports it.
func NewTestServer(tb testing.TB, token string) *Server {
	s, _ := newServer(tb, quick, func(c *Config, _ *Deps) { c.Token = token })
	return s
}

// What this package's own tests use.
var (
	ServeTest = serve
	TestNow   = epoch0
)

// EventHub is where events are published.
func (s *Server) Hub() *EventHub { return s.deps.Hub }
