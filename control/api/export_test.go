package api

import "testing"

// NewTestServer returns a server of a fake controller, for tests of the client. They
// cannot be in this package, which the client imports.
func NewTestServer(tb testing.TB, token string) *Server {
	s, _ := newServer(tb, quick, func(c *Config, _ *Deps) { c.Token = token })
	return s
}

// Helpers of this package's tests for package api_test.
var (
	ServeTest = serve
	TestNow   = epoch0
)

// Hub returns the event hub.
func (s *Server) Hub() *EventHub { return s.deps.Hub }

// inUse returns the number of places in use.
func (l *requestLimit) inUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[anonymousConn] + l.count[tenantConn] + l.count[operatorConn]
}
