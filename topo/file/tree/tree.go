// Package tree parses YAML, and JSON, which is YAML too, for readers that walk
// a document instead of decoding it into structs: so every complaint has a
// line, also one about what a value means, and a scalar is the text the user
// wrote. topo/file and scenario are such readers.
package tree

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Fault is what is wrong with a document; the reader knows the file's name.
type Fault struct {
	Line int // from 1; 0 where no line is to blame
	Msg  string
}

func (f *Fault) Error() string { return f.Msg }

// Bounds of nesting: our formats need 6 levels, and the parser's memory grows
// with the square of the depth.
const (
	maxDepth  = 32
	maxIndent = 200 // column of a dash, which also nests
)

// Parse parses data that holds one document; what names that document in
// complaints: "a topology". Every error is a *Fault.
func Parse(data []byte, what string) (body ast.Node, err error) {
	// The parser is other people's: an input it stumbles over is a bad file,
	// not a crash of ours.
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, &Fault{1, fmt.Sprintf("not YAML (%v), want %s", p, what)}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := checkDepth(tokens); err != nil {
		return nil, err
	}
	doc, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxFault(err)
	}
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return nil, &Fault{LineOf(d.Body), "second document, want one in a file"}
		}
		body = d.Body
	}
	if body == nil {
		return nil, &Fault{1, "file is empty, want " + what}
	}
	return body, nil
}

func checkDepth(tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxIndent {
				return &Fault{t.Position.Line, fmt.Sprintf("item at column %d, want less than %d", t.Position.Column, maxIndent)}
			}
		}
		if depth > maxDepth {
			return &Fault{t.Position.Line, fmt.Sprintf("more than %d brackets inside each other, want less", maxDepth)}
		}
	}
	return nil
}

func syntaxFault(err error) *Fault {
	f := &Fault{1, err.Error()}
	if ye := yaml.Error(nil); errors.As(err, &ye) {
		f.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil {
			f.Line = t.Position.Line
		}
	}
	f.Msg += `, want YAML or JSON; a value that begins with ">" needs quotes`
	return f
}

// LineOf returns the line on which a node begins, or 0 where it has none.
func LineOf(n ast.Node) int {
	// A block mapping's own token is its first colon, which may stand on a
	// later line than its first key.
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return LineOf(m.Values[0].Key)
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return LineOf(m.Key)
	}
	if t := n.GetToken(); t != nil {
		return t.Position.Line
	}
	return 0
}

// Text returns a scalar as it was written, without quotes. The error says what
// stands there instead, for a complaint to go on with.
func Text(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.NullNode:
		return "", errors.New("is empty, want a value")
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	default:
		return "", fmt.Errorf("is %s, want a single value", Kind(n))
	}
}

// Kind names what stands where something else was wanted.
func Kind(n ast.Node) string {
	switch n.(type) {
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
