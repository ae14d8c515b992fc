package filter

import "strings"

// op is the operation of a node.
type op uint8

const (
	or op = iota
	and
	not
	present // a Bool is true; any other field has a value
	equal
	unequal
	less
	atMost
	more
	atLeast
	within
	contains
)

var signOf = [...]string{
	or: "||", and: "&&", not: "!", equal: "==", unequal: "!=", less: "<", atMost: "<=", more: ">", atLeast: ">=",
	within: "in", contains: "contains",
}

// node is a filter or a part of one.
type node struct {
	op    op
	field int    // of the schema
	spans []span // the operands: one, or several of within
	kids  []*node
}

// addOperand adds an operand. Chains within chains of the same kind are merged
// into one, so that a filter has one form.
func (n *node) addOperand(kid *node) {
	if kid.op == n.op {
		n.kids = append(n.kids, kid.kids...)
	} else {
		n.kids = append(n.kids, kid)
	}
}

// Filter selects records. It is immutable; many goroutines may use it.
type Filter[T any] struct {
	schema *Schema[T]
	root   *node // nil: matches everything
}

// Match reports whether a record matches. It allocates nothing, if the fields'
// functions do not.
func (f *Filter[T]) Match(r *T) bool { return f.root == nil || f.match(f.root, r) }

func (f *Filter[T]) match(n *node, r *T) bool {
	switch n.op {
	case or:
		for _, kid := range n.kids {
			if f.match(kid, r) {
				return true
			}
		}
		return false
	case and:
		for _, kid := range n.kids {
			if !f.match(kid, r) {
				return false
			}
		}
		return true
	case not:
		return !f.match(n.kids[0], r)
	}
	field := &f.schema.list[n.field]
	some := false
	for i := 0; ; i++ {
		v, ok := field.Get(r, i)
		if !ok {
			return some && n.op == unequal
		}
		some = true
		// One matching value of several is enough; but for unequal none may be
		// equal, as in Wireshark since its version 4.
		if yes := n.test(field.Type, &v); n.op == unequal && yes {
			return false
		} else if n.op != unequal && yes {
			return true
		}
	}
}

// test compares one value; for unequal it reports whether it is equal.
func (n *node) test(t Type, v *Value) bool {
	switch n.op {
	case present:
		return t != Bool || v.Int != 0
	case less:
		return t.compare(v, &n.spans[0].lo) < 0
	case atMost:
		return t.compare(v, &n.spans[0].lo) <= 0
	case more:
		return t.compare(v, &n.spans[0].lo) > 0
	case atLeast:
		return t.compare(v, &n.spans[0].lo) >= 0
	case contains:
		return strings.Contains(v.Text, n.spans[0].lo.Text)
	}
	for i := range n.spans {
		if n.spans[i].contains(t, v) {
			return true
		}
	}
	return false
}

// RequiredValue returns the value that a field has in every record that matches,
// if the filter is such a test, alone or joined by && with others. A store can
// then search the records with that value only.
func (f *Filter[T]) RequiredValue(name string) (v Value, ok bool) {
	if f.root == nil {
		return v, false
	}
	parts := []*node{f.root}
	if f.root.op == and {
		parts = f.root.kids
	}
	for _, n := range parts {
		if n.op == equal && f.schema.list[n.field].Name == name && n.spans[0].single(f.schema.list[n.field].Type) {
			return n.spans[0].lo, true
		}
	}
	return v, false
}

// String prints the filter so that Parse reads it back.
func (f *Filter[T]) String() string {
	if f.root == nil {
		return ""
	}
	return string(f.schema.words.appendNode(nil, f.root))
}

func (v *vocabulary) appendNode(b []byte, n *node) []byte {
	switch n.op {
	case or, and:
		for i, kid := range n.kids {
			if i > 0 {
				b = append(append(append(b, ' '), signOf[n.op]...), ' ')
			}
			b = v.appendOperand(b, kid, n.op == and && kid.op == or)
		}
		return b
	case not:
		kid := n.kids[0]
		return v.appendOperand(append(b, '!'), kid, kid.op != present && kid.op != not)
	}
	f := &v.fields[n.field]
	b = append(b, f.name...)
	if n.op == present {
		return b
	}
	b = append(append(append(b, ' '), signOf[n.op]...), ' ')
	if n.op != within {
		return f.appendSpan(b, &n.spans[0])
	}
	b = append(b, '{')
	for i := range n.spans {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = f.appendSpan(b, &n.spans[i])
	}
	return append(b, '}')
}

func (v *vocabulary) appendOperand(b []byte, n *node, wrap bool) []byte {
	if !wrap {
		return v.appendNode(b, n)
	}
	return append(v.appendNode(append(b, '('), n), ')')
}
