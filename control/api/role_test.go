package api

import (
	"net/http"
	"strings"
	"testing"
)

const (
	viewerToken = "viewer-token-0123456789"
	actingToken = "acting-token-0123456789"
	adminToken  = "admins-token-0123456789"
)

func withUsers(c *Config, d *Deps) {
	withTokens(c, d)
	c.Users = []User{
		{Name: "vera", Role: "viewer", Token: viewerToken}, {Name: "otto", Role: "operator", Token: actingToken}, {Name: "ada", Role: "admin", Token: adminToken},
	}
	c.TokenFailures = 1 << 20 // no delays
}

// TestRoles sends every request of the document with every role: a viewer reads, an
// operator also acts, and faults and pace are the admin's. What a role may do is
// answered as to the holder of api.token.
func TestRoles(t *testing.T) {
	_, k := newServer(t)
	refused := map[string]int{}
	for name, token := range map[string]string{"viewer": viewerToken, "operator": actingToken, "admin": adminToken} {
		s, _ := newServer(t, withUsers)
		for _, c := range calls(k) {
			if c.id == "get-events" {
				continue // a stream
			}
			reads := c.method == http.MethodGet
			lab := strings.HasPrefix(c.path, "/faults") || strings.HasPrefix(c.path, "/clock")
			may := reads || name == "admin" || name == "operator" && !lab
			w := do(s.Handler(), c.method, Prefix+c.path, c.body, "Authorization", "Bearer "+token)
			if (w.Code != http.StatusForbidden) != may {
				t.Errorf("%s %s as %s = %d %s; want it allowed: %v", c.method, c.path, name, w.Code, w.Body, may)
			}
			if !may {
				refused[name]++
			}
		}
	}
	if refused["viewer"] < 10 || refused["operator"] < 3 || refused["admin"] != 0 {
		t.Errorf("refused %v; want most of viewers", refused)
	}
	s, _ := newServer(t, withUsers)
	w := do(s.Handler(), "POST", Prefix+"/faults", `{"kind":"incast"}`, "Authorization", "Bearer "+actingToken)
	if !strings.Contains(w.Body.String(), "otto has the role operator; this needs admin") {
		t.Errorf("%s; want the roles named", w.Body)
	}
	w = do(s.Handler(), "POST", Prefix+"/incidents/inc-0/actions", `{"kind":"ack"}`, "Authorization", "Bearer "+actingToken)
	if w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), `"who":"otto"`) {
		t.Errorf("ack = %d %s; want otto's", w.Code, w.Body)
	}
	if w := do(s.Handler(), "GET", "/metrics", "", "Authorization", "Bearer "+viewerToken); w.Code != http.StatusOK {
		t.Errorf("/metrics of a viewer = %d; want 200", w.Code)
	}
}

// TestRefusedTokens: a request without a caller is told why, and never which token is
// right.
func TestRefusedTokens(t *testing.T) {
	s, _ := newServer(t, withUsers)
	for header, want := range map[string]string{
		"":                         "token required",
		"Basic YTpi":               "has no bearer token",
		"Bearer ":                  "has no bearer token",
		"Bearer wrong":             "the token was refused",
		"Bearer " + adminToken[1:]: "the token was refused",
	} {
		w := do(s.Handler(), "GET", Prefix+"/clock", "", "Authorization", header)
		if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), adminToken[1:]) {
			t.Errorf("%q = %d %s; want 401 with %q", header, w.Code, w.Body, want)
		}
		if invalid := strings.Contains(w.Header().Get("WWW-Authenticate"), `error="invalid_token"`); invalid != (want == "the token was refused") {
			t.Errorf("%q: WWW-Authenticate %q", header, w.Header().Get("WWW-Authenticate"))
		}
	}
}

// TestWrongUsers: users that could not be told apart, or would open the API, are refused.
func TestWrongUsers(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`role "root" of vera, want one of viewer, operator, admin`: func(c *Config) { c.Users[0].Role = "root" },
		"token of vera has 5 characters, want at least 16":         func(c *Config) { c.Users[0].Token = "short" },
		`name "", want one of 1 to 128 characters`:                 func(c *Config) { c.Users[0].Name = "" },
		`token of user "otto" is used twice`:                       func(c *Config) { c.Users[1].Token = viewerToken },
		`user "vera" is there twice`:                               func(c *Config) { c.Users[1].Name = "vera" },
		`user "operator" is there twice, or has the name`:          func(c *Config) { c.Users[1].Name = "operator" },
		"without an operator token":                                func(c *Config) { c.Token, c.Tenants = "", nil },
		`token of tenant "blue" is used twice`:                     func(c *Config) { c.Tenants[0].Token = viewerToken },
	} {
		cfg := DefaultConfig()
		withUsers(&cfg, nil)
		change(&cfg)
		if err := CheckConfig(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
