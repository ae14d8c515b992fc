package scenario

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/weft-telemetry/weft/topo/file"
)

// Place is where in a file something stands. It is zero for what was made in
// Go.
type Place struct {
	File string
	Line int // from 1
}

// errorf complains about what stands there.
func (p Place) errorf(format string, args ...any) *file.Error {
	return &file.Error{File: p.File, Line: p.Line, Msg: fmt.Sprintf(format, args...)}
}

// value is a node of a YAML document and where it stands.
type value struct {
	Place
	node ast.Node
	key  int // line of the key it stands under, if any
}

// Bounds of nesting: ours needs 6 levels, and the parser's memory grows with
// the square of the depth.
const (
	maxDepth  = 32
	maxIndent = 200 // column of a dash, which also nests
)

// parseTree parses a file that holds one YAML document, or JSON, which is YAML
// too.
func parseTree(name string, data []byte) (v value, err error) {
	at := Place{File: name}
	// The parser is other people's: an input it stumbles over is a bad file,
	// not a crash of ours.
	defer func() {
		if p := recover(); p != nil {
			err = Place{name, 1}.errorf("not YAML (%v), want a scenario", p)
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkDepth(at, tokens); err != nil {
		return v, err
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		return v, syntaxError(name, err)
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return v, Place{name, lineOf(doc.Body)}.errorf("second document, want one in a file")
		}
		body = doc.Body
	}
	if body == nil {
		return v, Place{name, 1}.errorf("file is empty, want a scenario")
	}
	at.Line = max(lineOf(body), 1)
	return value{Place: at, node: body}, nil
}

func checkDepth(at Place, tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		at.Line = t.Position.Line
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxIndent {
				return at.errorf("item at column %d, want less than %d", t.Position.Column, maxIndent)
			}
		}
		if depth > maxDepth {
			return at.errorf("more than %d brackets inside each other, want less", maxDepth)
		}
	}
	return nil
}

func syntaxError(name string, err error) error {
	e := Place{name, 1}.errorf("%v", err)
	if ye := yaml.Error(nil); errors.As(err, &ye) {
		e.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil {
			e.Line = t.Position.Line
		}
	}
	e.Msg += `, want YAML or JSON; a value that begins with ">" needs quotes`
	return e
}

func lineOf(n ast.Node) int {
	// A mapping's own token is its first colon, which may stand on a later line
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

// child makes a value of a part of v; what has no line of its own has v's.
func (v value) child(n ast.Node) value {
	if line := lineOf(n); line > 0 {
		v.Line = line
	}
	v.node = n
	return v
}

// text returns a scalar as it was written, without quotes.
func (v value) text(what string) (string, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return "", v.errorf("%s is empty, want a value", what)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	default:
		return "", v.errorf("%s is %s, want a single value", what, v.kind())
	}
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
		return nil, v.errorf("%s is %s, want a list", what, v.kind())
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
		return nil, v.errorf("%s is %s, want keys and values", what, v.kind())
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

// kind names what stands where something else was wanted.
func (v value) kind() string {
	switch v.node.(type) {
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "keys and values"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias, which are not understood here"
	case *ast.TagNode:
		return "a tag, which is not understood here"
	case *ast.NullNode:
		return "empty"
	case ast.ScalarNode:
		return "a single value"
	default:
		return "something else"
	}
}
