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
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/model"
)

// Tenant may report slow flows of its own addresses, and nothing else.
type Tenant struct {
	Name     string         `yaml:"name"`
	Token    string         `yaml:"token"`
	Prefixes []netip.Prefix `yaml:"prefixes"` // its addresses
	Hosts    []string       `yaml:"hosts"`    // its hosts, by name: their addresses are its own
}

// diagnosisRequestRate bounds the polls that reports of slow flows cause: so many in a
// second, for each caller, and diagnosisRequestBurst at once.
const (
	diagnosisRequestRate  = 2.0
	diagnosisRequestBurst = 10
)

// access is who may ask, and how the server proves itself: what Reload changes.
type access struct {
	callers []*caller // the operator first
	open    bool      // there is no token: everybody is the operator
	cert    *tls.Certificate
}

// Reload takes tokens and tenants of a configuration, and reads the files of the
// certificate anew. All else of it needs another Server. On an error nothing has
// changedItems.
func (s *Server) Reload(cfg *Config) error {
	callers, err := newCallers(cfg)
	if err != nil {
		return err
	}
	next := &access{callers: callers, open: cfg.Token == ""}
	if (cfg.TLSCert != "") != (s.cfg.TLSCert != "") {
		return errors.New("api: TLS cannot be turned on or off while serving, want a restart")
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

// caller is who asks.
type caller struct {
	digest     [sha256.Size]byte
	tenant     *Tenant // nil: the operator
	diagnosisRequests tokenBucket
}

type callerKey struct{}

// callerOf returns who asks. Every request of the API has a caller.
func callerOf(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

// newCallers reads the tokens. The first caller is the operator; with no token
// withTrace its own, everybody is.
func newCallers(cfg *Config) (list []*caller, err error) {
	list = append(list, newCaller(cfg.Token, nil))
	for i := range cfg.Tenants {
		t := &cfg.Tenants[i]
		switch {
		case cfg.Token == "":
			return nil, fmt.Errorf("api: tenant %q without an operator's token, want one: everybody would be the operator", t.Name)
		case len(t.Token) < minToken:
			return nil, fmt.Errorf("api: token of tenant %q has %d characters, want at least %d", t.Name, len(t.Token), minToken)
		case len(t.Prefixes)+len(t.Hosts) == 0:
			return nil, fmt.Errorf("api: tenant %q without prefixes and hosts, want its own", t.Name)
		}
		c := newCaller(t.Token, t)
		for _, other := range list {
			if other.digest == c.digest {
				return nil, fmt.Errorf("api: token of tenant %q is also another's", t.Name)
			}
		}
		list = append(list, c)
	}
	if cfg.Token != "" && len(cfg.Token) < minToken {
		return nil, fmt.Errorf("api: token has %d characters, want at least %d", len(cfg.Token), minToken)
	}
	return list, nil
}

// minToken makes guessing hopeless at any rate that a server answers.
const minToken = 16

func newCaller(token string, t *Tenant) *caller {
	return &caller{digest: sha256.Sum256([]byte(token)), tenant: t, diagnosisRequests: tokenBucket{tokens: diagnosisRequestBurst}}
}

// identify finds the caller of a request by its bearer token, or nil. Digests
// are compared, all of them and in constant time, so that the time taken tells
// nothing of any token.
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
	return found
}

// owns tells whether a flow begins or ends at an address of the caller's.
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

// tenantKey marks operations that tenants may call; all others are the
// operator's.
const tenantKey = "tenant"

func allowTenants(op *huma.Operation) { op.Metadata = map[string]any{tenantKey: true} }

// checkAccess refuses a tenant what is the operator's.
func (s *Server) checkAccess(ctx huma.Context, next func(huma.Context)) {
	if callerOf(ctx.Context()).tenant != nil && ctx.Operation().Metadata[tenantKey] != true {
		s.metrics.refused.WithLabelValues("tenant").Inc()
		_ = huma.WriteErr(s.api, ctx, http.StatusForbidden, "a tenant may only report slow flows of its own and read what was found")
		return
	}
	next(ctx)
}

// tokenBucket holds a caller to a rate.
type tokenBucket struct {
	mu   sync.Mutex
	tokens float64
	last time.Time
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
