package oidc

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// maxKeys bounds a key set. Providers publish two to four.
const maxKeys = 64

// minModulus is the least size of an RSA key in bits: RFC 7518, section 3.3.
const minModulus = 2048

// key is a public key and the one algorithm that it is for. A token's header cannot
// choose another.
type key struct {
	id        string
	algorithm string
	public    any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// jsonKey is a key as RFC 7517 writes it.
type jsonKey struct {
	Kty, Use, Alg, Kid string
	KeyOps             []string `json:"key_ops"`
	N, E               string   // RSA
	Crv, X, Y          string   // EC and OKP
}

// parseKeys reads the signature keys of a key set: RSA, P-256 and Ed25519. Keys for
// encryption are left out; any other is an error, so that none is missed silently.
func parseKeys(text []byte) (list []key, err error) {
	var set struct{ Keys []jsonKey }
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("not a JSON Web Key Set: %w", err)
	}
	if n := len(set.Keys); n == 0 || n > maxKeys {
		return nil, fmt.Errorf("%d keys, want 1 to %d", n, maxKeys)
	}
	for i := range set.Keys {
		j := &set.Keys[i]
		if j.Use == "enc" || len(j.KeyOps) > 0 && !slices.Contains(j.KeyOps, "verify") {
			continue
		}
		k, err := j.key()
		if err != nil {
			return nil, fmt.Errorf("key %d (kid %.40q): %w", i+1, j.Kid, err)
		}
		if slices.ContainsFunc(list, func(o key) bool { return o.id == k.id }) {
			return nil, fmt.Errorf("key %d: kid %.40q is there twice", i+1, j.Kid)
		}
		list = append(list, k)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no key for signatures among %d", len(set.Keys))
	}
	return list, nil
}

func (j *jsonKey) key() (k key, err error) {
	k.id = j.Kid
	switch {
	case j.Kty == "RSA":
		k.algorithm = "RS256"
		k.public, err = rsaKey(j.N, j.E)
	case j.Kty == "EC" && j.Crv == "P-256":
		k.algorithm = "ES256"
		k.public, err = ecKey(j.X, j.Y)
	case j.Kty == "OKP" && j.Crv == "Ed25519":
		k.algorithm = "EdDSA"
		var x []byte
		if x, err = decode(j.X); err == nil && len(x) != ed25519.PublicKeySize {
			err = fmt.Errorf("x of %d bytes, want %d", len(x), ed25519.PublicKeySize)
		}
		k.public = ed25519.PublicKey(x)
	default:
		return k, fmt.Errorf("kty %.20q, crv %.20q, want RSA, EC with P-256 or OKP with Ed25519", j.Kty, j.Crv)
	}
	if err == nil && j.Alg != "" && j.Alg != k.algorithm {
		err = fmt.Errorf("alg %.20q, want %s", j.Alg, k.algorithm)
	}
	return k, err
}

func rsaKey(n, e string) (*rsa.PublicKey, error) {
	modulus, err := decode(n)
	if err != nil {
		return nil, fmt.Errorf("n: %w", err)
	}
	exponent, err := decode(e)
	if err != nil {
		return nil, fmt.Errorf("e: %w", err)
	}
	k := &rsa.PublicKey{N: new(big.Int).SetBytes(modulus)}
	if bits := k.N.BitLen(); bits < minModulus || bits > 8*minModulus {
		return nil, fmt.Errorf("n of %d bits, want %d to %d", bits, minModulus, 8*minModulus)
	}
	x := new(big.Int).SetBytes(exponent)
	if !x.IsInt64() || x.Int64() < 3 || x.Int64() >= 1<<31 || x.Bit(0) == 0 {
		return nil, fmt.Errorf("e of %d bits, want an odd number from 3 to 2^31-1", x.BitLen())
	}
	k.E = int(x.Int64())
	return k, nil
}

func ecKey(x, y string) (*ecdsa.PublicKey, error) {
	point := []byte{4} // uncompressed
	for _, c := range [...]string{x, y} {
		b, err := decode(c)
		if err != nil {
			return nil, err
		}
		if len(b) != coordinateSize {
			return nil, fmt.Errorf("coordinate of %d bytes, want %d", len(b), coordinateSize)
		}
		point = append(point, b...)
	}
	return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
}

// coordinateSize is the length of a coordinate of P-256, and of each half of a signature.
const coordinateSize = 32
