package clickhouse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// everything selects all rows.
const everything = "1"

// keyField is a field of a filter that depends on the key and the hosts of a flow alone.
type keyField struct {
	columns []string // of its values
	has     string   // when it has them; empty: always
	kind    byte     // 'i' integer, 'b' whether it is there, 't' text, 'a' address
}

var keyFields = func() map[string]keyField {
	all := map[string]keyField{
		"flow.src":  {[]string{"src_host"}, "src_host != ''", 't'},
		"flow.dst":  {[]string{"dst_host"}, "dst_host != ''", 't'},
		"flow.host": {[]string{"src_host", "dst_host"}, "", 't'},
	}
	// The text of a flow has brackets around addresses of IPv6, also of those that stand for IPv4.
	for version, is := range map[string]string{"ip": "position(flow, '[') = 0", "ipv6": "position(flow, '[') > 0"} {
		all[version] = keyField{nil, is, 'b'}
		all[version+".src"] = keyField{[]string{"src"}, is, 'a'}
		all[version+".dst"] = keyField{[]string{"dst"}, is, 'a'}
		all[version+".addr"] = keyField{[]string{"src", "dst"}, is, 'a'}
		all[map[string]string{"ip": "ip.proto", "ipv6": "ipv6.nxt"}[version]] = keyField{[]string{"proto"}, is, 'i'}
	}
	for _, p := range []model.Proto{model.TCP, model.UDP} {
		is := fmt.Sprintf("proto = %d", p)
		all[p.String()] = keyField{nil, is, 'b'}
		all[p.String()+".srcport"] = keyField{[]string{"sport"}, is, 'i'}
		all[p.String()+".dstport"] = keyField{[]string{"dport"}, is, 'i'}
		all[p.String()+".port"] = keyField{[]string{"sport", "dport"}, is, 'i'}
	}
	return all
}()

// candidates is SQL for rows of flows that may match a filter. If exact, all of them do;
// otherwise the sums of these flows decide.
func (s *Store) candidates(c *record.Condition) (sql string, exact bool) {
	switch {
	case c == nil:
		return everything, true
	case c.Op == "&&" || c.Op == "||":
		exact = true
		var parts conditions
		for _, kid := range c.Of {
			part, ok := s.candidates(kid)
			if exact = exact && ok; part == everything && c.Op == "||" {
				return everything, exact && len(c.Of) == 1
			}
			parts.add("%s", part)
		}
		if c.Op == "||" {
			return "(" + strings.Join(parts, ") OR (") + ")", exact
		}
		return parts.String(), exact
	case c.Op == "!":
		if part, ok := s.candidates(c.Of[0]); ok {
			return "NOT (" + part + ")", true
		}
		return everything, false
	}
	f, known := keyFields[c.Field]
	if !known {
		return everything, false
	}
	return s.test(&f, c)
}

// test translates a test of a field.
func (s *Store) test(f *keyField, c *record.Condition) (sql string, exact bool) {
	var where conditions
	if f.has != "" {
		where.add("%s", f.has)
	}
	if c.Op == "has" {
		return where.String(), true
	}
	if f.kind == 'b' { // its only value is true
		holds := slices.ContainsFunc(c.Ranges, func(r record.ConditionRange) bool { return r.Lo.Int <= 1 && r.Hi.Int >= 1 })
		switch c.Op {
		case "==", "in":
		case "!=":
			holds = !holds
		default:
			return everything, false
		}
		if !holds {
			return "0", true
		}
		return where.String(), true
	}
	var some conditions
	exact = true
	for _, column := range f.columns {
		one, ok := s.testColumn(f.kind, column, c)
		if one == "" {
			return everything, false
		}
		exact = exact && ok
		some.add("%s", one)
	}
	any := "(" + strings.Join(some, ") OR (") + ")"
	if c.Op == "!=" {
		if !exact {
			return everything, false
		}
		any = "NOT (" + any + ")"
	}
	where.add("%s", any)
	return where.String(), exact
}

// testColumn compares a column; for "!=" it reports whether it is equal. It is empty if the
// server cannot compare it.
func (s *Store) testColumn(kind byte, column string, c *record.Condition) (sql string, exact bool) {
	literal := func(v record.ConditionValue) string {
		switch kind {
		case 't':
			return quote(v.Text)
		case 'a':
			return quote(v.Addr.String())
		}
		return number(v.Int)
	}
	switch c.Op {
	case "<", "<=", ">", ">=":
		if kind != 'i' {
			return "", false
		}
		return fmt.Sprintf("%s %s %s", column, c.Op, literal(c.Ranges[0].Lo)), true
	case "contains":
		if kind != 't' {
			return "", false
		}
		return fmt.Sprintf("position(%s, %s) > 0", column, literal(c.Ranges[0].Lo)), true
	case "==", "!=", "in":
	default:
		return "", false
	}
	var some conditions
	exact = true
	for _, r := range c.Ranges {
		switch {
		case r.Lo == r.Hi:
			some.add("%s = %s", column, literal(r.Lo))
		case kind == 'i':
			some.add("%s BETWEEN %s AND %s", column, literal(r.Lo), literal(r.Hi))
		case kind == 'a' && r.Lo.Addr.Is4() && r.Hi.Addr.Is4():
			// What is no address counts as 0.0.0.0.
			exact = false
			some.add("%s BETWEEN %d AND %d", s.ipv4(column), r.Lo.Addr.V4(), r.Hi.Addr.V4())
		default:
			return "", false
		}
	}
	return "(" + strings.Join(some, ") OR (") + ")", exact
}

// ipv4 is an address as a number; 0 if it is none.
func (s *Store) ipv4(column string) string {
	if s.current {
		return "IPv4StringToNumOrDefault(" + column + ")"
	}
	return "IPv4StringToNum(" + column + ")"
}
