package api

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/oidc"
)

// TestHoldersOfProviderTokens: what a caller may do is what its token says, and a token
// that is refused says why.
func TestHoldersOfProviderTokens(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	encode := base64.RawURLEncoding.EncodeToString
	file := filepath.Join(t.TempDir(), "keys.json")
	set := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":%q}]}`, encode(key.Public().(ed25519.PublicKey)))
	if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	token := func(name string, expires time.Duration, roles ...string) string {
		claims, err := json.Marshal(map[string]any{
			"iss": "https://login.example.net", "aud": "weft", "sub": name, "exp": time.Now().Add(expires).Unix(), "groups": roles,
		})
		if err != nil {
			t.Fatal(err)
		}
		text := encode([]byte(`{"alg":"EdDSA","kid":"a"}`)) + "." + encode(claims)
		return "Bearer " + text + "." + encode(ed25519.Sign(key, []byte(text)))
	}
	provider := oidc.Config{Issuer: "https://login.example.net", Audience: "weft", Keys: file, RoleClaim: "groups"}
	s, _ := newServer(t, func(c *Config, d *Deps) {
		withUsers(c, d)
		c.OIDC = provider
	})
	get := func(header string) (int, string) {
		w := do(s.Handler(), "GET", Prefix+"/clock", "", "Authorization", header)
		return w.Code, w.Body.String()
	}
	setPace := func(header string) int {
		return do(s.Handler(), "PUT", Prefix+"/clock", `{"pace":0.5}`, "Authorization", header).Code
	}
	if code, body := get(token("alice", time.Hour, "billing", "viewer")); code != http.StatusOK {
		t.Errorf("a viewer reads: %d %s; want 200", code, body)
	}
	for role, want := range map[string]bool{"viewer": false, "operator": false, "admin": true} {
		if code := setPace(token("alice", time.Hour, role)); (code != http.StatusForbidden) != want {
			t.Errorf("%s sets the pace: %d; allowed should be %v", role, code, want)
		}
	}
	for header, want := range map[string]string{
		token("alice", time.Hour):                   "it gives alice none of the roles viewer, operator, admin",
		token("alice", -time.Hour, "admin"):         "it expired at",
		token("alice", time.Hour, "admin") + "AAAA": "its signature",
		"Bearer a.b.c":                              "its header",
		"Bearer " + adminToken[1:]:                  "this controller does not know it",
	} {
		if code, body := get(header); code != http.StatusUnauthorized || !strings.Contains(body, want) {
			t.Errorf("%.20s… = %d %s; want 401 with %q", header, code, body, want)
		}
	}
	c, err := s.access.Load().holders.identify(strings.TrimPrefix(token("alice", time.Hour, "viewer", "admin"), "Bearer "), time.Now())
	if err != nil || c.name() != "oidc alice" || c.role != admin {
		t.Errorf("alice is %+v, %v; want oidc alice, an admin", c, err)
	}

	cfg := DefaultConfig()
	withUsers(&cfg, nil)
	cfg.OIDC = oidc.Config{Issuer: "https://login.example.net"}
	if err := CheckConfig(cfg); err == nil || !strings.Contains(err.Error(), "want issuer, audience and keys") {
		t.Errorf("%v; want an error about audience and keys", err)
	}
	cfg.OIDC, cfg.Token, cfg.Users, cfg.Tenants = provider, "", nil, nil
	if err := CheckConfig(cfg); err == nil || !strings.Contains(err.Error(), "without an operator token") {
		t.Errorf("%v; want an error about the operator token", err)
	}
}
