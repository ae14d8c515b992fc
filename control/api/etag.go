package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Conditional is the part of a request that asks only for what the client does not
// have.
type Conditional struct {
	IfNoneMatch string `header:"If-None-Match" maxLength:"4096" doc:"ETag of what the client has: the answer is 304 if it is current"`
}

// unchanged reports whether the client has what a tag is of. Comparison is weak
// (RFC 9110, 8.8.3.2).
func (c *Conditional) unchanged(tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	rest := strings.TrimSpace(c.IfNoneMatch)
	if rest == "*" {
		return true
	}
	for rest != "" {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " \t,"), "W/")
		if !strings.HasPrefix(rest, `"`) {
			return false // not a list of tags
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return false
		}
		if rest[:end+2] == tag {
			return true
		}
		rest = rest[end+2:]
	}
	return false
}

// contentTag is the tag of a response by its content. Tags are weak, as compressed
// and plain responses share them.
func contentTag(b []byte) string {
	sum := sha256.Sum256(b)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// snapshotTag is the tag of a snapshot of the state.
func snapshotTag(id string) string { return `W/"` + id + `"` }
