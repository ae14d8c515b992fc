// Package tree parses YAML, and JSON, which is YAML too, for readers that walk
// a document instead of decoding it into structs. Every error has a line, also
// one about the meaning of a value, and a scalar is the text the user wrote.
// Topologies, scenarios and configurations are read with it.
package tree

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/weft-telemetry/weft/internal/fileerror"
)

// Limits of nesting: our formats need 6 levels, and the parser's memory grows
// with the square of the depth.
const (
	maxDepth  = 32
	maxIndent = 200 // column of a dash, which also nests
)

// Parse parses a file that holds one document and returns its root; what names
// that document in errors: "a topology". Every error is a *fileerror.Error.
func Parse(name string, data []byte, what string) (root Value, err error) {
	// An input that makes the third-party parser panic is an invalid file, not a
	// crash.
	defer func() {
		if p := recover(); p != nil {
			root, err = Value{}, fileerror.Errorf(name, 1, "not YAML (%v), want %s", p, what)
		}
	}()
	// Some editors begin a file with a byte order mark, which YAML allows.
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff"))
	if err := checkDepth(name, tokens); err != nil {
		return Value{}, err
	}
	doc, err := parser.Parse(tokens, 0)
	if err != nil {
		return Value{}, syntaxError(name, err)
	}
	var body ast.Node
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			return Value{}, fileerror.Errorf(name, lineOf(d.Body), "second document, want one in a file")
		}
		body = d.Body
	}
	if body == nil {
		return Value{}, fileerror.Errorf(name, 1, "file is empty, want %s", what)
	}
	return Value{Position: fileerror.Position{File: name, Line: max(lineOf(body), 1)}, node: body}, nil
}

func checkDepth(name string, tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxIndent {
				return fileerror.Errorf(name, t.Position.Line, "item at column %d, want less than %d", t.Position.Column, maxIndent)
			}
		}
		if depth > maxDepth {
			return fileerror.Errorf(name, t.Position.Line, "more than %d nested brackets, want less", maxDepth)
		}
	}
	return nil
}

func syntaxError(name string, err error) error {
	line, msg := 1, err.Error()
	if ye := yaml.Error(nil); errors.As(err, &ye) {
		msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil {
			line = t.Position.Line
		}
	}
	return fileerror.Errorf(name, line, `%s, want YAML or JSON; a value that begins with ">" needs quotes`, msg)
}
