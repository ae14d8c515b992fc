package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
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

// maxDepth bounds nesting: ours needs 4 levels. The parser's memory grows with
// the square of the depth.
const maxDepth = 32

// maxIndent bounds the column of a dash, which also nests.
const maxIndent = 200

// parseTree parses a file that holds one YAML document.
func parseTree(file string, data []byte) (v value, err error) {
	// The parser is other people's: an input it stumbles over is a bad file,
	// not a crash of ours.
	defer func() {
		if p := recover(); p != nil {
			err = &Error{File: file, Msg: fmt.Sprintf("not YAML (%v), want a topology file", p)}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkDepth(file, tokens); err != nil {
		return v, err
	}
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		return v, syntaxError(file, err)
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return v, value{file: file, line: lineOf(doc.Body)}.errorf("second document, want one in a file")
		}
		body = doc.Body
	}
	if body == nil {
		return v, &Error{File: file, Line: 1, Msg: "file is empty, want a topology"}
	}
	return value{file: file, node: body, line: lineOf(body)}, nil
}

func checkDepth(file string, tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxIndent {
				return &Error{File: file, Line: t.Position.Line, Msg: fmt.Sprintf("item at column %d, want less than %d", t.Position.Column, maxIndent)}
			}
		}
		if depth > maxDepth {
			return &Error{File: file, Line: t.Position.Line, Msg: fmt.Sprintf("more than %d brackets inside each other, want less", maxDepth)}
		}
	}
	return nil
}

func syntaxError(file string, err error) *Error {
	e := &Error{File: file, Msg: err.Error()}
	if ye := yaml.Error(nil); errors.As(err, &ye) {
		e.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil {
			e.Line = t.Position.Line
		}
	}
	e.Msg += ", want YAML or JSON"
	return e
}

func lineOf(n ast.Node) int {
	// A mapping's own token is its first colon, which may stand on a later line
	// than its first key.
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
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

func (v value) errorf(format string, args ...any) *Error {
	return &Error{File: v.file, Line: v.line, Msg: fmt.Sprintf(format, args...)}
}

// keyErrorf complains about the key that v stands under.
func (v value) keyErrorf(format string, args ...any) *Error {
	v.line = v.at
	return v.errorf(format, args...)
}

// child makes a value of a part of v; what has no line of its own has v's.
func (v value) child(n ast.Node) value {
	if line := lineOf(n); line > 0 {
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
		return nil, v.errorf("%s is %s, want a list", what, v.kind())
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
		return nil, v.errorf("%s is %s, want keys and values", what, v.kind())
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

// kind names what stands where something else was wanted.
func (v value) kind() string {
	switch v.node.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
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
