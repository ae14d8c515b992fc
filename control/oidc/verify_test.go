package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	issuer   = "https://login.example.net/realms/ops"
	audience = "weft"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// provider signs tokens with one key of each kind.
type provider struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &provider{r, e, d}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet is the provider's key set, as it publishes it.
func (p *provider) keySet(t testing.TB) []map[string]any {
	t.Helper()
	point, err := p.ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return []map[string]any{
		{"kty": "RSA", "kid": "RS256", "alg": "RS256", "use": "sig", "n": encode(p.rsa.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "kid": "ES256", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])},
		{"kty": "OKP", "kid": "EdDSA", "crv": "Ed25519", "x": encode(p.ed.Public().(ed25519.PublicKey))},
		{"kty": "RSA", "kid": "for encryption", "use": "enc", "n": "AQAB", "e": "AQAB"},
	}
}

func (p *provider) sign(t testing.TB, algorithm, text string) []byte {
	t.Helper()
	digest := sha256.Sum256([]byte(text))
	switch algorithm {
	case "RS256":
		s, err := rsa.SignPKCS1v15(rand.Reader, p.rsa, crypto.SHA256, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	case "ES256":
		r, s, err := ecdsa.Sign(rand.Reader, p.ec, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "EdDSA":
		return ed25519.Sign(p.ed, []byte(text))
	}
	return nil
}

// token makes a token of a header and claims, signed by an algorithm's key.
func (p *provider) token(t testing.TB, algorithm string, header, claims map[string]any) string {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := encode(h) + "." + encode(c)
	return text + "." + encode(p.sign(t, algorithm, text))
}

func (p *provider) verifier(t testing.TB, keys []map[string]any) (*Verifier, error) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(Config{Issuer: issuer, Audience: audience, Keys: file})
}

func goodClaims() map[string]any {
	return map[string]any{
		"iss": issuer, "aud": []string{"other", audience}, "sub": "4711", "preferred_username": "alice",
		"exp": now.Add(time.Hour).Unix(), "nbf": now.Unix(), "roles": []string{"operator", "billing"},
	}
}

func TestTokensOfEveryKindOfKey(t *testing.T) {
	p := newProvider(t)
	v, err := p.verifier(t, p.keySet(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range []string{"RS256", "ES256", "EdDSA"} {
		id, err := v.Verify(p.token(t, algorithm, map[string]any{"alg": algorithm, "kid": algorithm}, goodClaims()), now)
		if err != nil || id.Name != "alice" || !slices.Equal(id.Roles, []string{"operator", "billing"}) {
			t.Errorf("%s: %+v, %v; want alice with two roles", algorithm, id, err)
		}
	}
	alone, err := p.verifier(t, p.keySet(t)[1:2])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.Verify(p.token(t, "ES256", map[string]any{"alg": "ES256"}, goodClaims()), now); err != nil {
		t.Errorf("a token without kid for the only key: %v; want none", err)
	}
}

// TestWrongTokens: each differs from a valid token in one point.
func TestWrongTokens(t *testing.T) {
	p := newProvider(t)
	v, err := p.verifier(t, p.keySet(t))
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{"alg": "RS256", "kid": "RS256"}
	valid := p.token(t, "RS256", header, goodClaims())
	parts := strings.Split(valid, ".")
	with := func(name string, value any) string {
		c := goodClaims()
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return p.token(t, "RS256", header, c)
	}
	unsigned := encode([]byte(`{"alg":"none","kid":"RS256"}`)) + "." + parts[1] + "."
	// A secret made of the public key, which an attacker knows.
	confused := encode([]byte(`{"alg":"HS256","kid":"RS256"}`)) + "." + parts[1]
	mac := hmac.New(sha256.New, p.rsa.N.Bytes())
	mac.Write([]byte(confused))
	confused += "." + encode(mac.Sum(nil))
	ec := p.token(t, "ES256", map[string]any{"alg": "ES256", "kid": "ES256"}, goodClaims())
	zero := ec[:strings.LastIndexByte(ec, '.')+1] + encode(make([]byte, 64))
	order := elliptic.P256().Params().N.FillBytes(make([]byte, 32))
	for name, c := range map[string]struct{ token, want string }{
		"empty":               {"", "three parts"},
		"four parts":          {valid + ".x", "three parts"},
		"too long":            {strings.Repeat("x", maxToken+1), "at most 8192"},
		"alg none":            {unsigned, `"none", want RS256`},
		"key confusion":       {confused, `"HS256", want RS256`},
		"another key's":       {p.token(t, "ES256", map[string]any{"alg": "ES256", "kid": "RS256"}, goodClaims()), `"ES256", want RS256`},
		"unknown key":         {p.token(t, "RS256", map[string]any{"alg": "RS256", "kid": "old"}, goodClaims()), `"old" is not in the key set`},
		"no key":              {p.token(t, "RS256", map[string]any{"alg": "RS256"}, goodClaims()), "is not in the key set"},
		"key for encryption":  {p.token(t, "RS256", map[string]any{"alg": "RS256", "kid": "for encryption"}, goodClaims()), "is not in the key set"},
		"signed by another":   {newProvider(t).token(t, "RS256", header, goodClaims()), "signature is wrong"},
		"other claims":        {parts[0] + "." + encode([]byte(`{"sub":"mallory"}`)) + "." + parts[2], "signature is wrong"},
		"signature cut":       {valid[:len(valid)-6], "signature is wrong"},
		"signature of zeroes": {zero, "signature is wrong"},
		"signature r = n":     {zero[:len(zero)-86] + encode(append(order, order...)), "signature is wrong"},
		"padding":             {valid + "==", "not base64url"},
		"line ends":           {valid + "\n", "not base64url"},
		"header no JSON":      {encode([]byte("x")) + "." + parts[1] + "." + parts[2], "header is no JSON"},
		"extensions":          {p.token(t, "RS256", map[string]any{"alg": "RS256", "kid": "RS256", "crit": []string{"b64"}}, goodClaims()), "crit"},
		"another issuer":      {with("iss", issuer+"/"), "its issuer is"},
		"issuer in a list":    {with("iss", []string{issuer}), "its issuer is"},
		"another audience":    {with("aud", "grafana"), `want "weft"`},
		"no audience":         {with("aud", nil), `want "weft"`},
		"expired":             {with("exp", now.Add(-clockSkew).Unix()), "it expired at 2026-03-01T11:59:00Z"},
		"never expires":       {with("exp", nil), "no time at which it expires"},
		"expiry no number":    {with("exp", "tomorrow"), "no time at which it expires"},
		"not yet valid":       {with("nbf", now.Add(clockSkew+time.Second).Unix()), "not valid yet"},
		"name of two lines":   {with("preferred_username", "a\nb"), "names no holder"},
	} {
		if id, err := v.Verify(c.token, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, id, err, c.want)
		}
	}
	if _, err := v.Verify(with("exp", now.Add(time.Second-clockSkew).Unix()), now); err != nil {
		t.Errorf("within the clock skew: %v; want none", err)
	}
}

func TestWrongKeySets(t *testing.T) {
	p := newProvider(t)
	for name, c := range map[string]struct {
		change func(k []map[string]any) []map[string]any
		want   string
	}{
		"none":           {func([]map[string]any) []map[string]any { return nil }, "0 keys, want 1 to 64"},
		"encryption":     {func(k []map[string]any) []map[string]any { return k[3:] }, "no key for signatures"},
		"twice":          {func(k []map[string]any) []map[string]any { return append(k, k[0]) }, `kid "RS256" is there twice`},
		"secret":         {func([]map[string]any) []map[string]any { return []map[string]any{{"kty": "oct", "k": "AQAB"}} }, `kty "oct"`},
		"short RSA":      {set(0, "n", encode(big.NewInt(1<<40).Bytes())), "n of 41 bits"},
		"even exponent":  {set(0, "e", "Ag"), "e of 2 bits"},
		"other alg":      {set(0, "alg", "HS256"), `alg "HS256", want RS256`},
		"off the curve":  {set(1, "x", encode(make([]byte, 32))), "key 2"},
		"short point":    {set(1, "y", "AQAB"), "coordinate of 3 bytes"},
		"other curve":    {set(1, "crv", "P-521"), `crv "P-521"`},
		"short Ed25519":  {set(2, "x", "AQAB"), "x of 3 bytes"},
		"not base64 url": {set(2, "x", "+/"), "not base64url"},
	} {
		if _, err := p.verifier(t, c.change(p.keySet(t))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, c.want)
		}
	}
	if _, err := Open(Config{Issuer: issuer}); err == nil {
		t.Error("no keys: no error; want one")
	}
}

// set changes a member of a key.
func set(key int, member, value string) func([]map[string]any) []map[string]any {
	return func(k []map[string]any) []map[string]any {
		k[key][member] = value
		return k
	}
}

// FuzzVerify: whatever is sent, only what the provider signed is valid.
func FuzzVerify(f *testing.F) {
	p := newProvider(f)
	p.ed = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // the same in all processes of a run
	v, err := p.verifier(f, p.keySet(f)[2:3])
	if err != nil {
		f.Fatal(err)
	}
	header := map[string]any{"alg": "EdDSA", "kid": "EdDSA"}
	valid := p.token(f, "EdDSA", header, goodClaims())
	f.Add("")
	f.Add("..")
	f.Add(encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{}`)) + ".")
	f.Add(valid[:len(valid)-1])
	f.Fuzz(func(t *testing.T, token string) {
		if id, err := v.Verify(token, now); err == nil && token != valid {
			t.Errorf("%q is a token of %+v; want none", token, id)
		}
	})
}

// FuzzKeys: no key set is accepted that has a key without an algorithm.
func FuzzKeys(f *testing.F) {
	x := encode(make([]byte, ed25519.PublicKeySize))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"` + x + `"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519"},{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseKeys(text)
		for _, k := range list {
			if k.algorithm == "" || k.public == nil || k.signed("x", nil) {
				t.Errorf("key %+v of %q; want an algorithm and a public key", k, text)
			}
		}
		if err == nil && len(list) == 0 {
			t.Errorf("no key of %q; want an error", text)
		}
	})
}
