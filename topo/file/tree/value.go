package tree

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/internal/fileerror"
)

// Value is a part of a document and its position.
type Value struct {
	fileerror.Position
	node ast.Node
	key  int // line of its key, if any

	aliases map[string]ast.Node // values of anchors; nil: aliases are not followed
	merges  int                 // number of merge keys that lead here
}

// KeyPosition returns the position of v's key, which may be on an earlier line.
func (v Value) KeyPosition() fileerror.Position { return fileerror.Position{File: v.File, Line: v.key} }

// IsMap reports whether v is a mapping.
func (v Value) IsMap() bool { _, is := v.node.(ast.MapNode); return is }

// IsList reports whether v is a list.
func (v Value) IsList() bool { _, is := v.node.(*ast.SequenceNode); return is }

// IsEmpty reports whether v is null.
func (v Value) IsEmpty() bool { _, is := v.node.(*ast.NullNode); return is }

// IsText reports whether v is a single value.
func (v Value) IsText() bool { _, is := v.node.(ast.ScalarNode); return is && !v.IsEmpty() }

// child makes a value of a part of v; a part without a line has v's.
func (v Value) child(n ast.Node) Value {
	if line := lineOf(n); line > 0 {
		v.Line = line
	}
	v.node = v.resolveAlias(n)
	return v
}

// Text returns a scalar as it was written, without quotes. what names v in the
// error about anything else.
func (v Value) Text(what string) (string, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return "", v.Errorf("%s is empty, want a value", what)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	default:
		return "", v.Errorf("%s is %s, want a single value", what, kind(n))
	}
}

// ColonText is Text that also accepts "a:b" without quotes inside braces: YAML
// defines it as one text, the parser reads a key and its value.
func (v Value) ColonText(what, want string) (string, error) {
	if !v.IsMap() {
		return v.Text(what)
	}
	list, err := v.Entries(what)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", v.Errorf("%s is keys and values, want %s", what, want)
	}
	after, err := list[0].Text(what)
	return list[0].Key + ":" + after, err
}

// List returns the items of a list.
func (v Value) List(what string) ([]Value, error) {
	list, ok := v.node.(*ast.SequenceNode)
	if !ok {
		return nil, v.Errorf("%s is %s, want a list", what, kind(v.node))
	}
	items := make([]Value, len(list.Values))
	for i, item := range list.Values {
		items[i] = v.child(item)
	}
	return items, nil
}

// Entry is one key of a mapping.
type Entry struct {
	Key string
	Value
}

// Entries returns a mapping's keys and values in order. Keys are unique: the
// parser rejects a duplicate.
func (v Value) Entries(what string) ([]Entry, error) {
	m, ok := v.node.(ast.MapNode)
	if !ok {
		return nil, v.Errorf("%s is %s, want keys and values", what, kind(v.node))
	}
	var own, merged []Entry
	for it := m.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() && v.aliases != nil {
			list, err := v.mergedEntries(it.Value(), what)
			if err != nil {
				return nil, err
			}
			merged = append(merged, list...)
			continue
		}
		key := v.child(it.Key())
		text, err := key.Text("a key of " + what)
		if err != nil {
			return nil, err
		}
		val := key.child(it.Value())
		val.key = key.Line
		own = append(own, Entry{text, val})
	}
	return mergeWithOwn(merged, own), nil
}

// Fields returns a mapping by key and rejects keys that are not listed.
func (v Value) Fields(what string, keys ...string) (map[string]Value, error) {
	list, err := v.Entries(what)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Value, len(list))
	for _, e := range list {
		if !slices.Contains(keys, e.Key) {
			return nil, e.KeyPosition().Errorf("unknown key %q in %s, want one of %s", e.Key, what, strings.Join(keys, ", "))
		}
		out[e.Key] = e.Value
	}
	return out, nil
}

// lineOf returns the line on which a node begins, or 0 where it has none.
func lineOf(n ast.Node) int {
	// A block mapping's token is its first colon, which may be on a later line
	// than its first key.
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return lineOf(m.Values[0].Key)
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return lineOf(m.Key)
	}
	if t := n.GetToken(); t != nil {
		return t.Position.Line
	}
	return 0
}

// kind names the type of a node in errors.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "keys and values"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias, which is not supported here"
	case *ast.TagNode:
		return "a tag, which is not supported here"
	case *ast.NullNode:
		return "empty"
	case ast.ScalarNode:
		return "a single value"
	default:
		return "something else"
	}
}
