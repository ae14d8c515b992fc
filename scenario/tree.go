package scenario

import (
	"errors"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/internal/complaint"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// Place is where in a file something stands. It is zero for what was made in
// Go.
type Place struct {
	File string
	Line int // from 1
}

// errorf complains about what stands there.
func (p Place) errorf(format string, args ...any) *file.Error {
	return complaint.Errorf(p.File, p.Line, format, args...)
}

// value is a node of a YAML document and where it stands.
type value struct {
	Place
	node ast.Node
	key  int // line of the key it stands under, if any
}

// parseTree parses a file that holds one YAML document, or JSON, which is YAML
// too.
func parseTree(name string, data []byte) (value, error) {
	body, err := tree.Parse(data, "a scenario")
	if fault := (*tree.Fault)(nil); errors.As(err, &fault) {
		return value{}, Place{name, fault.Line}.errorf("%s", fault.Msg)
	}
	return value{Place: Place{name, max(tree.LineOf(body), 1)}, node: body}, nil
}

// child makes a value of a part of v; what has no line of its own has v's.
func (v value) child(n ast.Node) value {
	if line := tree.LineOf(n); line > 0 {
		v.Line = line
	}
	v.node = n
	return v
}

// text returns a scalar as it was written, without quotes.
func (v value) text(what string) (string, error) {
	text, err := tree.Text(v.node)
	if err != nil {
		return "", v.errorf("%s %v", what, err)
	}
	return text, nil
}

// list returns the items of a list. A single value is a list of itself.
func (v value) list(what string) ([]value, error) {
	switch n := v.node.(type) {
	case *ast.SequenceNode:
		items := make([]value, len(n.Values))
		for i, item := range n.Values {
			items[i] = v.child(item)
		}
		return items, nil
	case *ast.NullNode:
		return nil, v.errorf("%s is empty, want a list", what)
	case ast.ScalarNode:
		return []value{v}, nil
	default:
		return nil, v.errorf("%s is %s, want a list", what, tree.Kind(v.node))
	}
}

// entry is one key of a mapping.
type entry struct {
	key string
	value
}

// onKey is where the key stands, which may be above its value.
func (e entry) onKey() Place { return Place{e.File, e.value.key} }

// entries returns a mapping's keys and values in order.
func (v value) entries(what string) ([]entry, error) {
	m, ok := v.node.(ast.MapNode)
	if !ok {
		return nil, v.errorf("%s is %s, want keys and values", what, tree.Kind(v.node))
	}
	var out []entry
	seen := make(map[string]bool)
	for it := m.MapRange(); it.Next(); {
		key := v.child(it.Key())
		text, err := key.text("a key of " + what)
		if err != nil {
			return nil, err
		}
		if seen[text] {
			return nil, key.errorf("key %q is in %s twice, want it once", text, what)
		}
		seen[text] = true
		val := key.child(it.Value())
		val.key = key.Line
		out = append(out, entry{text, val})
	}
	return out, nil
}
