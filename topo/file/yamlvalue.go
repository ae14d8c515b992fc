package file

import (
	"errors"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/internal/complaint"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// value is a node of a YAML document that knows where it stands. Documents are
// walked, not decoded into structs: so every complaint has a line, also one
// about what a value means, and a scalar is the text the user wrote.
type value struct {
	file string
	node ast.Node
	line int
	at   int // line of the key it stands under, if any

	// anchors, by name, in formats where aliases are followed; else nil.
	anchors map[string]ast.Node
	merges  int // how many merge keys lead here
}

// maxMerges bounds merge keys, which may lead back to where they stand.
const maxMerges = 8

// parseTree parses a file that holds one YAML document.
func parseTree(file string, data []byte) (value, error) {
	body, err := tree.Parse(data, "a topology")
	if fault := (*tree.Fault)(nil); errors.As(err, &fault) {
		return value{}, &Error{File: file, Line: fault.Line, Msg: fault.Msg}
	}
	return value{file: file, node: body, line: tree.LineOf(body)}, nil
}

func (v value) errorf(format string, args ...any) *Error {
	return complaint.Errorf(v.file, v.line, format, args...)
}

// keyErrorf complains about the key that v stands under.
func (v value) keyErrorf(format string, args ...any) *Error {
	v.line = v.at
	return v.errorf(format, args...)
}

// child makes a value of a part of v; what has no line of its own has v's.
func (v value) child(n ast.Node) value {
	if line := tree.LineOf(n); line > 0 {
		v.line = line
	}
	v.node = v.follow(n)
	return v
}

// follow returns what an anchor or alias stands for, where they are followed.
func (v value) follow(n ast.Node) ast.Node {
	if v.anchors == nil {
		return n
	}
	// An alias names an anchor, and an anchor's value is neither; the bound is
	// for files that break this rule.
	for range 4 {
		switch a := n.(type) {
		case *ast.AnchorNode:
			n = a.Value
		case *ast.AliasNode:
			target, ok := v.anchors[a.Value.GetToken().Value]
			if !ok {
				return n
			}
			n = target
		default:
			return n
		}
	}
	return n
}

// anchorsBelow collects the anchors of a tree.
func anchorsBelow(n ast.Node) map[string]ast.Node {
	found := make(map[string]ast.Node)
	for _, a := range ast.Filter(ast.AnchorType, n) {
		if a := a.(*ast.AnchorNode); a.Value != nil {
			found[a.Name.GetToken().Value] = a.Value
		}
	}
	return found
}

// text returns a scalar as it was written, without quotes.
func (v value) text(what string) (string, error) {
	text, err := tree.Text(v.node)
	if err != nil {
		return "", v.errorf("%s %v", what, err)
	}
	return text, nil
}

// list returns the items of a list; an empty value is an empty list.
func (v value) list(what string) ([]value, error) {
	switch n := v.node.(type) {
	case *ast.SequenceNode:
		items := make([]value, len(n.Values))
		for i, item := range n.Values {
			items[i] = v.child(item)
		}
		return items, nil
	case *ast.NullNode:
		return nil, nil
	default:
		return nil, v.errorf("%s is %s, want a list", what, tree.Kind(v.node))
	}
}

// entry is one key of a mapping.
type entry struct {
	key string
	value
}

// entries returns a mapping's keys and values in order.
func (v value) entries(what string) ([]entry, error) {
	m, ok := v.node.(ast.MapNode)
	if !ok {
		return nil, v.errorf("%s is %s, want keys and values", what, tree.Kind(v.node))
	}
	var out []entry
	for it := m.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() && v.anchors != nil {
			from := v.child(it.Value())
			if from.merges++; from.merges > maxMerges {
				return nil, from.errorf("%s merges more than %d times, want less", what, maxMerges)
			}
			merged, err := from.entries(what)
			if err != nil {
				return nil, err
			}
			out = append(merged, out...) // the mapping's own keys win
			continue
		}
		key := v.child(it.Key())
		text, err := key.text("a key of " + what)
		if err != nil {
			return nil, err
		}
		val := key.child(it.Value())
		val.at = key.line
		out = append(out, entry{text, val})
	}
	return out, nil
}

// fields returns a mapping by key and refuses keys that are not listed.
func (v value) fields(what string, keys ...string) (map[string]value, error) {
	list, err := v.entries(what)
	if err != nil {
		return nil, err
	}
	out := make(map[string]value, len(list))
	for _, e := range list {
		if !slices.Contains(keys, e.key) {
			return nil, e.keyErrorf("unknown key %q in %s, want one of %s", e.key, what, strings.Join(keys, ", "))
		}
		if _, twice := out[e.key]; twice {
			return nil, e.keyErrorf("key %q is in %s twice, want it once", e.key, what)
		}
		out[e.key] = e.value
	}
	return out, nil
}
