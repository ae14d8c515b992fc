package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/control/oidc"
	"github.com/weft-telemetry/weft/model"
)

// Tenant may report slow flows of its own addresses and read their diagnoses,
// nothing else.
type Tenant struct {
	Name     string         `yaml:"name"`
	Token    string         `yaml:"token"`
	Prefixes []netip.Prefix `yaml:"prefixes"` // the tenant's addresses
	Hosts    []string       `yaml:"hosts"`    // names of the tenant's hosts, whose addresses it owns
}

// Every diagnosis request makes switches answer polls, so each caller has a rate
// limit in requests per second and a burst size.
const (
	diagnosisRequestRate  = 2.0
	diagnosisRequestBurst = 10
)

// access holds the API's callers and the server's certificate: what Reload replaces.
type access struct {
	callers []*caller // the operator first
	open    bool      // no token is set: every caller is the operator
	holders *holders  // of tokens of an OpenID Connect provider; nil: there is none
	cert    *tls.Certificate
}

// Reload replaces tokens and tenants and reads the certificate files again. Other
// settings need a new Server. On an error nothing has changed.
func (s *Server) Reload(cfg *Config) error {
	callers, err := newCallers(cfg)
	if err != nil {
		return err
	}
	next := &access{callers: callers, open: cfg.Token == ""}
	if cfg.OIDC != (oidc.Config{}) {
		if next.holders, err = newHolders(cfg); err != nil {
			return err
		}
	}
	if (cfg.TLSCert != "") != (s.cfg.TLSCert != "") {
		return errors.New("api: TLS cannot be switched on or off while serving; restart the server")
	}
	if cfg.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
		if err != nil {
			return fmt.Errorf("api: read certificate: %w", err)
		}
		next.cert = &cert
	}
	s.access.Store(next)
	return nil
}

// caller is the operator or a tenant.
type caller struct {
	digest            [sha256.Size]byte
	tenant            *Tenant // nil: the operator or a user
	user              string  // name of a user; empty: api.token
	role              role    // of those that are no tenants
	diagnosisRequests tokenBucket
	refusedWrites     tokenBucket // of a tenant, in the audit log
}

// name is how the audit log names the caller.
func (c *caller) name() string {
	switch {
	case c.tenant != nil:
		return "tenant " + c.tenant.Name
	case c.user != "":
		return c.user
	}
	return "operator"
}

// class is what the caller's connection and requests count as.
func (c *caller) class() connClass {
	if c.tenant == nil {
		return operatorConn
	}
	return tenantConn
}

type callerKey struct{}

// callerOf returns the caller of a request. Every API request has one.
func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// newCallers builds the list of callers from the tokens. The first is the
// operator; without an operator token every caller is the operator.
func newCallers(cfg *Config) (list []*caller, err error) {
	list = append(list, newCaller(cfg.Token, nil))
	for i := range cfg.Users {
		u := &cfg.Users[i]
		if err := u.Check(); err != nil {
			return nil, fmt.Errorf("api: users: %w", err)
		}
		if cfg.Token == "" {
			return nil, fmt.Errorf("api: user %q without an operator token, want one: "+
				"without it every caller is the operator", u.Name)
		}
		c := newCaller(u.Token, nil)
		c.user, c.role = u.Name, role(slices.Index(roleNames, u.Role))
		for _, other := range list {
			if other.digest == c.digest {
				return nil, fmt.Errorf("api: token of user %q is used twice", u.Name)
			}
			if other.name() == c.name() {
				return nil, fmt.Errorf("api: user %q is there twice, or has the name of the holder of api.token", u.Name)
			}
		}
		list = append(list, c)
	}
	for i := range cfg.Tenants {
		t := &cfg.Tenants[i]
		switch {
		case cfg.Token == "":
			return nil, fmt.Errorf("api: tenant %q without an operator token, want one: "+
				"without it every caller is the operator", t.Name)
		case len(t.Token) < minToken:
			return nil, fmt.Errorf("api: token of tenant %q has %d characters, want at least %d", t.Name, len(t.Token), minToken)
		case len(t.Prefixes)+len(t.Hosts) == 0:
			return nil, fmt.Errorf("api: tenant %q without prefixes and hosts, want at least one", t.Name)
		}
		c := newCaller(t.Token, t)
		for _, other := range list {
			if other.digest == c.digest {
				return nil, fmt.Errorf("api: token of tenant %q is used twice", t.Name)
			}
		}
		list = append(list, c)
	}
	if cfg.Token != "" && len(cfg.Token) < minToken {
		return nil, fmt.Errorf("api: token has %d characters, want at least %d", len(cfg.Token), minToken)
	}
	return list, nil
}

// minToken is the minimum token length in characters: guessing is infeasible at
// any request rate.
const minToken = 16

func newCaller(token string, t *Tenant) *caller {
	return &caller{
		digest: sha256.Sum256([]byte(token)), tenant: t, role: admin,
		diagnosisRequests: tokenBucket{tokens: diagnosisRequestBurst},
		refusedWrites:     tokenBucket{tokens: diagnosisRequestBurst},
	}
}

// identify returns the caller of a request by its bearer token, or nil. It
// compares all digests in constant time, so that timing reveals nothing about a
// token.
func (s *Server) identify(r *http.Request) *caller {
	now := s.access.Load()
	if now.open {
		return now.callers[0]
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	digest := sha256.Sum256([]byte(token))
	var found *caller
	for _, c := range now.callers {
		if subtle.ConstantTimeCompare(c.digest[:], digest[:]) == 1 {
			found = c
		}
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	if found == nil && now.holders != nil && oidc.IsToken(token) {
		found, _ = now.holders.identify(token, time.Now())
	}
	return found
}

// identifyGuarded identifies the caller of a request, and records on its
// connection and for its address whether the token was valid. Where no token is
// set every connection stays anonymous: none may keep others out.
func (s *Server) identifyGuarded(r *http.Request, conn *trackedConn) *caller {
	if s.access.Load().open {
		return s.identify(r)
	}
	if r.Header.Get("Authorization") == "" {
		return nil // not a guess
	}
	address := requestAddress(r)
	if conn.classOf() == anonymousConn {
		s.failures.wait(r.Context(), address, conn)
	}
	who := s.identify(r)
	if who == nil {
		s.metrics.tokenFailures.Inc()
		s.failures.add(address)
		conn.setClass(anonymousConn) // or a tenant could guess the operator's token without delay
		return nil
	}
	if conn.classOf() == who.class() {
		return who
	}
	conn.setClass(who.class())
	if who.tenant == nil { // a tenant could reset its address between guesses
		s.failures.reset(address)
	}
	return who
}

// owns reports whether a flow's source or destination belongs to the caller.
func (s *Server) owns(c *caller, k model.FlowKey) bool {
	return c.tenant == nil || s.ownsAddr(c.tenant, k.Src) || s.ownsAddr(c.tenant, k.Dst)
}

func (s *Server) ownsAddr(t *Tenant, a model.Addr) bool {
	ip := a.Netip()
	for _, p := range t.Prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	f := s.deps.Live.Fabric()
	for _, h := range t.Hosts {
		if id, ok := f.ByName(h); ok && f.Owns(id, a) {
			return true
		}
	}
	return false
}

// tenantKey marks operations that tenants may call; all others need the operator.
const tenantKey = "tenant"

func allowTenants(op *huma.Operation) { op.Metadata = map[string]any{tenantKey: true} }

// checkAccess rejects tenants' calls of operator-only operations, and calls of users
// whose role does not suffice.
func (s *Server) checkAccess(ctx huma.Context, next func(huma.Context)) {
	who := callerOf(ctx.Context())
	if need := neededRole(ctx.Operation()); who.tenant == nil && who.role < need {
		s.metrics.refused.WithLabelValues("role").Inc()
		_ = huma.WriteErr(s.api, ctx, http.StatusForbidden,
			fmt.Sprintf("%s has the role %s; this needs %s", who.name(), roleNames[who.role], roleNames[need]))
		return
	}
	if who.tenant != nil && ctx.Operation().Metadata[tenantKey] != true {
		s.metrics.refused.WithLabelValues("tenant").Inc()
		_ = huma.WriteErr(s.api, ctx, http.StatusForbidden,
			"a tenant may only report its own slow flows and read their diagnoses")
		return
	}
	next(ctx)
}

// tokenBucket limits a caller to the rate of diagnosis requests.
type tokenBucket struct {
	mu     sync.Mutex
	tokens float64
	last   time.Time
}

func (b *tokenBucket) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() {
		b.tokens = min(b.tokens+now.Sub(b.last).Seconds()*diagnosisRequestRate, diagnosisRequestBurst)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
