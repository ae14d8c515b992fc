package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/control/oidc"
)

// role is what a caller may do. Each role may do what those before it may.
type role uint8

const (
	viewer   role = iota // reads
	operator             // acts: probes, marks, counters, diagnosis requests, what is done about incidents
	admin                // changes what is watched: faults and pace of a demo, profiles of the process
)

var roleNames = []string{viewer: "viewer", operator: "operator", admin: "admin"}

// User is a person or program with a token and a role of its own.
type User struct {
	Name  string `yaml:"name"`
	Role  string `yaml:"role"` // viewer, operator or admin
	Token string `yaml:"token"`
}

// Check returns what is wrong with a user.
func (u *User) Check() error {
	switch {
	case u.Name == "" || len(u.Name) > 128 || strings.ContainsAny(u.Name, "\r\n\t"):
		return fmt.Errorf("name %.20q, want one of 1 to 128 characters in one line", u.Name)
	case !slices.Contains(roleNames, u.Role):
		return fmt.Errorf("role %q of %s, want one of %s", u.Role, u.Name, strings.Join(roleNames, ", "))
	case len(u.Token) < minToken:
		return fmt.Errorf("token of %s has %d characters, want at least %d", u.Name, len(u.Token), minToken)
	}
	return nil
}

// neededRole returns the role that an operation needs.
func neededRole(op *huma.Operation) role {
	switch {
	case op.Method == http.MethodGet || op.Method == http.MethodHead:
		return viewer
	case op.Path == Prefix+"/clock" || strings.HasPrefix(op.Path, Prefix+"/faults"):
		return admin
	}
	return operator
}

// tokenProblem says why a request has no caller: the challenge of RFC 6750, and a
// sentence that names no token.
func (s *Server) tokenProblem(r *http.Request) (challenge, detail string) {
	const realm = `Bearer realm="weft"`
	header := r.Header.Get("Authorization")
	scheme, token, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		return realm, "token required: send the header Authorization: Bearer TOKEN"
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return realm + `, error="invalid_request"`, "the Authorization header has no bearer token: send Authorization: Bearer TOKEN"
	}
	if h := s.access.Load().holders; h != nil && oidc.IsToken(token) {
		if _, err := h.identify(token, time.Now()); err != nil {
			return realm + `, error="invalid_token"`, "the token was refused: " + err.Error()
		}
	}
	return realm + `, error="invalid_token"`, "the token was refused: this controller does not know it; check that it is complete and was not replaced"
}
