package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says whose tokens are valid here.
type Config struct {
	Issuer    string `yaml:"issuer"`     // iss of the tokens; empty: no tokens are
	Audience  string `yaml:"audience"`   // aud of the tokens: this service
	Keys      string `yaml:"keys"`       // file with the issuer's key set
	RoleClaim string `yaml:"role_claim"` // claim with the roles, one or a list; empty: roles
}

// clockSkew is how far the issuer's clock may differ.
const clockSkew = time.Minute

// maxToken bounds what is parsed before a signature is checked.
const maxToken = 8 << 10

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys []key
}

// Identity is what a valid token says of its holder.
type Identity struct {
	Name  string   // preferred_username, email or sub
	Roles []string // of the role claim
}

// Open reads the key set and returns the verifier of a configuration.
func Open(cfg Config) (*Verifier, error) {
	if cfg.Issuer == "" || cfg.Audience == "" || cfg.Keys == "" {
		return nil, errors.New("want issuer, audience and keys, or none of them")
	}
	text, err := os.ReadFile(cfg.Keys)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if cfg.RoleClaim == "" {
		cfg.RoleClaim = "roles"
	}
	v := &Verifier{cfg: cfg}
	if v.keys, err = parseKeys(text); err != nil {
		return nil, fmt.Errorf("keys: %s: %w", cfg.Keys, err)
	}
	return v, nil
}

// IsToken reports whether a bearer token has the form of a JSON Web Token.
func IsToken(token string) bool { return strings.Count(token, ".") == 2 }

// Verify returns the holder of a token that is valid at a time. Its errors name no part
// of the token that is secret.
func (v *Verifier) Verify(token string, now time.Time) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, fmt.Errorf("it has %d bytes, want at most %d", len(token), maxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Identity{}, errors.New("it has not the three parts of a JSON Web Token")
	}
	if err := v.checkSignature(parts); err != nil {
		return Identity{}, err
	}
	payload, err := decode(parts[1])
	if err != nil {
		return Identity{}, fmt.Errorf("its claims: %w", err)
	}
	var claims map[string]json.RawMessage
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Identity{}, errors.New("its claims are no JSON object")
	}
	return v.holder(claims, now)
}

// checkSignature checks the signature with the key that the header names. The
// algorithm is the key's: "none" and secrets made of public keys are no choice.
func (v *Verifier) checkSignature(parts []string) error {
	text, err := decode(parts[0])
	if err != nil {
		return fmt.Errorf("its header: %w", err)
	}
	var header struct {
		Alg, Kid string
		Crit     []string
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return errors.New("its header is no JSON object")
	}
	if len(header.Crit) > 0 {
		return errors.New("its header has extensions that must be understood (crit), which Weft does not")
	}
	at := slices.IndexFunc(v.keys, func(k key) bool { return k.id == header.Kid })
	if header.Kid == "" && len(v.keys) == 1 {
		at = 0
	}
	if at < 0 {
		return fmt.Errorf("its key %.40q is not in the key set; if the issuer has new keys, replace the file and reload", header.Kid)
	}
	k := &v.keys[at]
	if header.Alg != k.algorithm {
		return fmt.Errorf("its algorithm is %.20q, want %s, that of its key", header.Alg, k.algorithm)
	}
	signature, err := decode(parts[2])
	if err != nil {
		return fmt.Errorf("its signature: %w", err)
	}
	if !k.signed(parts[0]+"."+parts[1], signature) {
		return errors.New("its signature is wrong")
	}
	return nil
}

// signed reports whether a text has a signature of the key.
func (k *key) signed(text string, signature []byte) bool {
	digest := sha256.Sum256([]byte(text))
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if len(signature) != 2*coordinateSize {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:coordinateSize]), new(big.Int).SetBytes(signature[coordinateSize:])
		return ecdsa.Verify(public, digest[:], r, s)
	case ed25519.PublicKey:
		return ed25519.Verify(public, []byte(text), signature)
	}
	return false
}

// holder checks the claims of a signed token.
func (v *Verifier) holder(claims map[string]json.RawMessage, now time.Time) (id Identity, err error) {
	if iss := text(claims["iss"]); iss != v.cfg.Issuer {
		return id, fmt.Errorf("its issuer is %.60q, want %q", iss, v.cfg.Issuer)
	}
	if aud := texts(claims["aud"]); !slices.Contains(aud, v.cfg.Audience) {
		return id, fmt.Errorf("it is for %.60q, want %q", aud, v.cfg.Audience)
	}
	expires, ok := instant(claims["exp"])
	if !ok {
		return id, errors.New("it has no time at which it expires (exp)")
	}
	if !now.Before(expires.Add(clockSkew)) {
		return id, fmt.Errorf("it expired at %s", expires.UTC().Format(time.RFC3339))
	}
	if raw, given := claims["nbf"]; given {
		begins, ok := instant(raw)
		if !ok || now.Add(clockSkew).Before(begins) {
			return id, errors.New("it is not valid yet (nbf)")
		}
	}
	for _, name := range []string{"preferred_username", "email", "sub"} {
		if id.Name = text(claims[name]); id.Name != "" {
			break
		}
	}
	if id.Name == "" || len(id.Name) > 128 || strings.ContainsFunc(id.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Identity{}, errors.New("it names no holder (sub), or one of more than 128 bytes")
	}
	id.Roles = texts(claims[v.cfg.RoleClaim])
	return id, nil
}

// text is a JSON string; empty if it is none.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// texts is a JSON string, or a list of strings.
func texts(raw json.RawMessage) (list []string) {
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	if s := text(raw); s != "" {
		return []string{s}
	}
	return nil
}

// instant is a JSON number of seconds since 1970.
func instant(raw json.RawMessage) (time.Time, bool) {
	var seconds float64
	if len(raw) == 0 || json.Unmarshal(raw, &seconds) != nil || seconds <= 0 || seconds > 1e12 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// decode decodes base64url without padding, of which every bit counts.
func decode(s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return nil, errors.New("not base64url")
	}
	return b, nil
}
