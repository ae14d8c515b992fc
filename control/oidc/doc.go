// Package oidc checks the bearer tokens of an OpenID Connect provider: JSON Web Tokens
// (RFC 7519) that are signed with a key of a local key set (RFC 7517). It asks no other
// machine. Keys and issuer: docs/api.md#authentication.
package oidc
