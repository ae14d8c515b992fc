package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Cursor is the position where a page ended. Records are ordered by Time and Seq,
// newest first; steps of a series by Time, then by Name and Port.
type Cursor struct {
	Time  int64 // nanoseconds of the last item
	Seq   int64 // its sequence number in the store
	Bound int64 // the highest Seq when the first page was read; the walk has no later records
	Name  string
	Port  model.PortID
}

// sealLen is the length of the seal: 128 bits cannot be guessed.
const sealLen = 16

// Seal makes the Next of a page: text that only the holder of the key can make,
// and that is valid for no other query.
func (c Cursor) Seal(key []byte, kind Kind, q record.Query) string {
	b := binary.AppendVarint(nil, c.Time)
	b = binary.AppendVarint(b, c.Seq)
	b = binary.AppendVarint(b, c.Bound)
	b = binary.AppendUvarint(b, uint64(c.Port))
	b = append(b, c.Name...)
	return base64.RawURLEncoding.EncodeToString(append(b, seal(key, kind, q, b)...))
}

// Unseal parses a result of Seal for the same kind and query. Anything else is
// ErrQuery.
func Unseal(key []byte, kind Kind, q record.Query) (Cursor, error) {
	var c Cursor
	bad := fmt.Errorf("query of %s: %w: page token does not belong to this query", kind, ErrQuery)
	b, err := base64.RawURLEncoding.Strict().DecodeString(q.After)
	if err != nil || len(b) < sealLen {
		return c, bad
	}
	b, mac := b[:len(b)-sealLen], b[len(b)-sealLen:]
	if !hmac.Equal(mac, seal(key, kind, q, b)) {
		return c, bad
	}
	for _, v := range []*int64{&c.Time, &c.Seq, &c.Bound} {
		x, n := binary.Varint(b)
		if n <= 0 {
			return Cursor{}, bad
		}
		*v, b = x, b[n:]
	}
	port, n := binary.Uvarint(b)
	if n <= 0 || port > 0xffff {
		return Cursor{}, bad
	}
	c.Port, c.Name = model.PortID(port), string(b[n:])
	return c, nil
}

// seal covers the position and all of the query except the length of its pages.
func seal(key []byte, kind Kind, q record.Query, position []byte) []byte {
	first, last := TimeRange(q)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s %d %d %q %d %s %v %q %d %x",
		kind, first, last, q.Node, q.Port, q.Flow, q.Ends, q.Name, q.Step, position)
	if q.End != "" { // tokens of queries without it stay valid
		fmt.Fprintf(mac, " %q", q.End)
	}
	if q.Why != "" || q.MinLatency != 0 {
		fmt.Fprintf(mac, " why %q %d", q.Why, q.MinLatency)
	}
	return mac.Sum(nil)[:sealLen]
}
