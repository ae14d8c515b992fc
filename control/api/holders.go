package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/oidc"
)

// maxHolders bounds the holders of provider tokens that are remembered, with what each
// may still request this second.
const maxHolders = 4096

// holders are the callers with tokens of an OpenID Connect provider.
type holders struct {
	verifier *oidc.Verifier

	mu    sync.Mutex
	known map[string]*caller // by name and role
}

func newHolders(cfg *Config) (*holders, error) {
	if cfg.Token == "" {
		return nil, errors.New("api: oidc without an operator token, want one: without it every caller is the operator")
	}
	v, err := oidc.Open(cfg.OIDC)
	if err != nil {
		return nil, fmt.Errorf("api: oidc: %w", err)
	}
	return &holders{verifier: v, known: map[string]*caller{}}, nil
}

// identify returns the caller with a token of the provider, or why it was refused. The
// highest of its roles counts.
func (h *holders) identify(token string, now time.Time) (*caller, error) {
	id, err := h.verifier.Verify(token, now)
	if err != nil {
		return nil, err
	}
	best := -1
	for _, name := range id.Roles {
		best = max(best, slices.Index(roleNames, name))
	}
	if best < 0 {
		return nil, fmt.Errorf("it gives %s none of the roles %s", id.Name, strings.Join(roleNames, ", "))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := roleNames[best] + " " + id.Name
	c := h.known[key]
	if c == nil {
		for other := range h.known {
			if len(h.known) < maxHolders {
				break
			}
			delete(h.known, other)
		}
		c = newCaller("", nil)
		c.user, c.role = "oidc "+id.Name, role(best)
		h.known[key] = c
	}
	return c, nil
}
