package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// flowSQL writes the parts of one statement about the sums of flows. Text of the
// caller is in arguments.
type flowSQL struct {
	s    *Store
	ctx  context.Context
	args []any
	jobs []record.Job

	// What the conditions so far read.
	usesPaths, usesKeys bool
	pathTests           []string // columns of paths, by number
	texts               map[string][]string
}

// arg adds an argument and returns its place.
func (b *flowSQL) arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(len(b.args))
}

// flowField is a field of flows in SQL.
type flowField struct {
	values []string // expressions of its values
	has    string   // when it has them; empty: always
	kind   byte     // 'i' integer, 'b' boolean, 'f' float, 't' text, 'a' address, 's' switches, 'j' job
	key    bool     // of the columns of flow_keys alone
	paths  bool     // needs flow_paths
}

const (
	mostInt64 = `9223372036854775807`
	flowNanos = `least(end_ns - first_ns, ` + mostInt64 + `)`
	isIPv6    = `contains(src, ':')`
	isIPv4    = `NOT contains(src, ':')`
)

var (
	rateSQL  = `CASE WHEN end_ns <= first_ns THEN 0 ELSE ` + uint64SQL(`bytes`) + `::DOUBLE * 8e9 / ` + flowNanos + `::DOUBLE END`
	shareSQL = `CASE WHEN packets = 0 THEN 0 ELSE least(1, ` + uint64SQL(`lost`) + `::DOUBLE / ` + uint64SQL(`packets`) + `::DOUBLE) END`
)

// uint64SQL is a sum that may exceed 64 bits, and then is the largest number.
func uint64SQL(sum string) string { return `least(` + sum + `, 18446744073709551615)::UBIGINT` }

var flowFields = func() map[string]flowField {
	count := func(column string) flowField {
		return flowField{values: []string{`least(` + column + `, ` + mostInt64 + `)`}, kind: 'i'}
	}
	all := map[string]flowField{
		"flow.packets": count(`packets`), "flow.bytes": count(`bytes`), "flow.lost": count(`lost`), "flow.slots": count(`slots`),
		"flow.lost_share": {values: []string{shareSQL}, kind: 'f'},
		"flow.rate":       {values: []string{`least(trunc(` + rateSQL + `)::HUGEINT, ` + mostInt64 + `)`}, kind: 'i', paths: true},
		"flow.duration":   {values: []string{flowNanos}, kind: 'i', paths: true},
		"flow.exact":      {values: []string{`exact`}, kind: 'b', paths: true},
		"flow.hops":       {values: []string{`hops`}, kind: 'i', paths: true},
		"flow.paths":      {values: []string{`len(list_distinct(shapes))`}, kind: 'i', paths: true},
		"flow.src":        {values: []string{`src_host`}, has: `src_host <> ''`, kind: 't', key: true},
		"flow.dst":        {values: []string{`dst_host`}, has: `dst_host <> ''`, kind: 't', key: true},
		"flow.host":       {values: []string{`src_host`, `dst_host`}, kind: 't', key: true},
		"flow.job":        {kind: 'j', key: true},
		"hop.switch":      {kind: 's', paths: true},
	}
	for version, is := range map[string]string{"ip": isIPv4, "ipv6": isIPv6} {
		proto := map[string]string{"ip": "ip.proto", "ipv6": "ipv6.nxt"}[version]
		all[version] = flowField{values: []string{`true`}, has: is, kind: 'b', key: true}
		all[version+".src"] = flowField{values: []string{`src`}, has: is, kind: 'a', key: true}
		all[version+".dst"] = flowField{values: []string{`dst`}, has: is, kind: 'a', key: true}
		all[version+".addr"] = flowField{values: []string{`src`, `dst`}, has: is, kind: 'a', key: true}
		all[proto] = flowField{values: []string{`proto`}, has: is, kind: 'i', key: true}
	}
	for _, p := range []model.Proto{model.TCP, model.UDP} {
		is := fmt.Sprintf(`proto = %d`, p)
		all[p.String()] = flowField{values: []string{`true`}, has: is, kind: 'b', key: true}
		all[p.String()+".srcport"] = flowField{values: []string{`sport`}, has: is, kind: 'i', key: true}
		all[p.String()+".dstport"] = flowField{values: []string{`dport`}, has: is, kind: 'i', key: true}
		all[p.String()+".port"] = flowField{values: []string{`sport`, `dport`}, has: is, kind: 'i', key: true}
	}
	return all
}()

// onlyKeys reports whether a condition is about columns of flow_keys alone.
func onlyKeys(c *record.Condition) bool {
	if c.Field != "" {
		return flowFields[c.Field].key
	}
	return !slices.ContainsFunc(c.Of, func(kid *record.Condition) bool { return !onlyKeys(kid) })
}

// conjuncts are the conditions that must all hold.
func conjuncts(c *record.Condition) []*record.Condition {
	switch {
	case c == nil:
		return nil
	case c.Op == "&&":
		return c.Of
	}
	return []*record.Condition{c}
}

// impliesLoss reports whether only flows with losses match.
func impliesLoss(c *record.Condition) bool {
	return slices.ContainsFunc(conjuncts(c), func(c *record.Condition) bool {
		if c.Field != "flow.lost" && c.Field != "flow.lost_share" {
			return false
		}
		v := c.Ranges
		return c.Op == ">" && v[0].Lo.Int >= 0 && v[0].Lo.Float >= 0 || c.Op == ">=" && (v[0].Lo.Int > 0 || v[0].Lo.Float > 0)
	})
}

// condition translates a condition to an expression of the columns of a flow.
func (b *flowSQL) condition(c *record.Condition) (string, error) {
	switch c.Op {
	case "&&", "||", "!":
		parts := make([]string, len(c.Of))
		for i, kid := range c.Of {
			part, err := b.condition(kid)
			if err != nil {
				return "", err
			}
			parts[i] = `(` + part + `)`
		}
		switch c.Op {
		case "!":
			return `NOT ` + parts[0], nil
		case "&&":
			return strings.Join(parts, ` AND `), nil
		}
		return strings.Join(parts, ` OR `), nil
	}
	f, known := flowFields[c.Field]
	if !known {
		return "", fmt.Errorf("%w: flows have no field %q", store.ErrQuery, c.Field)
	}
	b.usesPaths = b.usesPaths || f.paths
	b.usesKeys = b.usesKeys || f.key
	switch f.kind {
	case 's':
		return b.switchTest(c)
	case 'j':
		job, err := b.jobOf()
		if err != nil {
			return "", err
		}
		f.values, f.has, f.kind = []string{job}, `(`+job+`) IS NOT NULL`, 't'
	}
	return b.test(&f, c)
}

// test translates a test of a field.
func (b *flowSQL) test(f *flowField, c *record.Condition) (string, error) {
	has := f.has
	if has == "" {
		has = `true`
	}
	if c.Op == "has" {
		if f.kind == 'b' {
			return fmt.Sprintf(`(%s) AND (%s)`, has, f.values[0]), nil
		}
		return has, nil
	}
	var some []string
	for _, v := range f.values {
		one, err := b.testValue(f, v, c)
		if err != nil {
			return "", err
		}
		some = append(some, `(`+one+`)`)
	}
	any := strings.Join(some, ` OR `)
	if c.Op == "!=" {
		any = `NOT (` + any + `)`
	}
	// A field without a value makes every test false, not unknown.
	return fmt.Sprintf(`(%s) AND coalesce(%s, false)`, has, any), nil
}

// testValue compares one value; for "!=" it reports whether it is equal.
func (b *flowSQL) testValue(f *flowField, v string, c *record.Condition) (string, error) {
	if f.kind == 'a' {
		return b.addressTest(v, c)
	}
	literal := func(x record.ConditionValue) string {
		switch f.kind {
		case 'f':
			return b.arg(x.Float) + `::DOUBLE`
		case 't':
			return b.arg(x.Text) + `::VARCHAR`
		case 'b':
			return strconv.FormatBool(x.Int != 0)
		}
		return strconv.FormatInt(x.Int, 10) + `::HUGEINT`
	}
	switch c.Op {
	case "<", "<=", ">", ">=":
		return fmt.Sprintf(`(%s) %s %s`, v, c.Op, literal(c.Ranges[0].Lo)), nil
	case "contains":
		return fmt.Sprintf(`contains(%s, %s)`, v, literal(c.Ranges[0].Lo)), nil
	}
	var some []string
	for _, r := range c.Ranges {
		if r.Lo == r.Hi {
			some = append(some, fmt.Sprintf(`(%s) = %s`, v, literal(r.Lo)))
		} else {
			some = append(some, fmt.Sprintf(`(%s) BETWEEN %s AND %s`, v, literal(r.Lo), literal(r.Hi)))
		}
	}
	return strings.Join(some, ` OR `), nil
}

// addressTest compares a column of addresses, which are text. What is not one address
// is looked up among those that exist.
func (b *flowSQL) addressTest(column string, c *record.Condition) (string, error) {
	if r := c.Ranges[0]; (c.Op == "==" || c.Op == "!=") && r.Lo == r.Hi {
		return column + ` = ` + b.arg(r.Lo.Addr.Netip().String()), nil
	}
	return b.amongTexts(`SELECT DISTINCT `+column+` FROM flow_keys`, column, func(text string) bool {
		a := parseAddress(text)
		switch lo := c.Ranges[0].Lo.Addr; c.Op {
		case "<":
			return a.Compare(lo) < 0
		case "<=":
			return a.Compare(lo) <= 0
		case ">":
			return a.Compare(lo) > 0
		case ">=":
			return a.Compare(lo) >= 0
		}
		return slices.ContainsFunc(c.Ranges, func(r record.ConditionRange) bool {
			return r.Lo.Addr.Compare(a) <= 0 && a.Compare(r.Hi.Addr) <= 0
		})
	})
}

// parseAddress reads an address of flow_keys; that of no flow is empty.
func parseAddress(text string) model.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return model.Addr{}
	}
	return model.AddrOf(a)
}

// amongTexts tests whether a column is one of the few texts of a query that match.
func (b *flowSQL) amongTexts(query, column string, match func(string) bool) (string, error) {
	list, err := b.matchingTexts(query, match)
	if err != nil || len(list) == 0 {
		return `false`, err
	}
	return fmt.Sprintf(`%s IN (SELECT unnest(%s::VARCHAR[]))`, column, b.arg(list)), nil
}

// matchingTexts returns the texts of a query that match.
func (b *flowSQL) matchingTexts(query string, match func(string) bool) (list []string, err error) {
	all, read := b.texts[query]
	if !read {
		err := b.s.queryRows(b.ctx, query, nil, func(rows *sql.Rows) error {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			all = append(all, text)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if b.texts == nil {
			b.texts = map[string][]string{}
		}
		b.texts[query] = all
	}
	for _, text := range all {
		if match(text) {
			list = append(list, text)
		}
	}
	return list, nil
}

// switchTest tests the switches of all paths of a flow.
func (b *flowSQL) switchTest(c *record.Condition) (string, error) {
	if c.Op == "has" {
		return `hops > 0`, nil
	}
	list, err := b.matchingTexts(`SELECT DISTINCT unnest(path) FROM flow_paths`, func(name string) bool {
		if c.Op == "contains" {
			return strings.Contains(name, c.Ranges[0].Lo.Text)
		}
		return slices.ContainsFunc(c.Ranges, func(r record.ConditionRange) bool { return r.Lo.Text == name })
	})
	if err != nil {
		return "", err
	}
	column := `false`
	if len(list) > 0 {
		b.pathTests = append(b.pathTests, fmt.Sprintf(`list_has_any(path, %s::VARCHAR[])`, b.arg(list)))
		column = fmt.Sprintf(`test%d`, len(b.pathTests)-1)
	}
	if c.Op == "!=" {
		return `hops > 0 AND NOT ` + column, nil
	}
	return column, nil
}

// jobOf is the name of a flow's job, NULL without one.
func (b *flowSQL) jobOf() (string, error) {
	text := `CASE`
	for i := range b.jobs {
		j := &b.jobs[i]
		var ends []string
		for _, end := range []struct{ host, address string }{{`src_host`, `src`}, {`dst_host`, `dst`}} {
			is := `false`
			if len(j.Hosts) > 0 {
				is = fmt.Sprintf(`%s <> '' AND %s IN (SELECT unnest(%s::VARCHAR[]))`, end.host, end.host, b.arg(j.Hosts))
			}
			if j.Owns != nil {
				owned, err := b.amongTexts(`SELECT DISTINCT `+end.address+` FROM flow_keys`, end.address,
					func(text string) bool { return j.Owns(parseAddress(text)) })
				if err != nil {
					return "", err
				}
				is += ` OR ` + owned
			}
			ends = append(ends, `(`+is+`)`)
		}
		text += fmt.Sprintf(` WHEN %s THEN %s::VARCHAR`, strings.Join(ends, ` AND `), b.arg(j.Name))
	}
	if len(b.jobs) == 0 {
		return `NULL::VARCHAR`, nil
	}
	return text + ` END`, nil
}
