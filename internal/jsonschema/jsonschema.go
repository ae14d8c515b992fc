// Package jsonschema writes the schemas of Weft's YAML files, by which editors
// complete and check them. It has the part of JSON Schema (draft 2020-12) that these
// schemas need; the files themselves are read without it.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Draft is the version of JSON Schema.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Schema describes a value.
type Schema struct {
	Schema      string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`

	Type       any                `json:"type,omitempty"` // a name or several
	Const      any                `json:"const,omitempty"`
	Enum       []any              `json:"enum,omitempty"`
	Pattern    string             `json:"pattern,omitempty"` // of texts
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// Additional describes values of other keys; a pointer to false: there are none.
	Additional any       `json:"additionalProperties,omitempty"`
	Items      *Schema   `json:"items,omitempty"`
	AnyOf      []*Schema `json:"anyOf,omitempty"`
	AllOf      []*Schema `json:"allOf,omitempty"`
	If         *Schema   `json:"if,omitempty"`
	Then       *Schema   `json:"then,omitempty"`
}

// Object is a mapping with these keys and no others.
func Object(properties map[string]*Schema) *Schema {
	return &Schema{Type: "object", Properties: properties, Additional: new(bool)}
}

// Map is a mapping with any keys, whose values are alike.
func Map(values *Schema) *Schema { return &Schema{Type: "object", Additional: values} }

// Scalar is a text or a number: sizes, rates and times are either.
func Scalar(description string) *Schema {
	return &Schema{Type: []string{"string", "number"}, Description: description}
}

// Text is a text, which YAML may read as a number or a boolean.
func Text(description string) *Schema {
	return &Schema{Type: []string{"string", "number", "boolean"}, Description: description}
}

// Number is a whole number, or a text of digits.
func Number(description string) *Schema {
	return &Schema{Type: []string{"integer", "string"}, Pattern: "^ *-?[0-9]+ *$", Description: description}
}

// Switch is on or off.
func Switch(description string) *Schema {
	return &Schema{Enum: []any{"on", "off", "true", "false", "yes", "no", true, false}, Description: description}
}

// Words is one of some texts.
func Words(description string, list ...string) *Schema {
	s := &Schema{Description: description}
	for _, w := range list {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// List is a list.
func List(items *Schema) *Schema { return &Schema{Type: "array", Items: items} }

// OneOrMore is a value or a list of such values.
func OneOrMore(items *Schema) *Schema { return &Schema{AnyOf: []*Schema{items, List(items)}} }

// ByKind is a mapping whose key "kind" determines its other keys.
func ByKind(kinds map[string]*Schema, order []string) *Schema {
	s := &Schema{Type: "object", Required: []string{"kind"}, Properties: map[string]*Schema{"kind": Words("what it is", order...)}}
	for _, name := range order {
		s.AllOf = append(s.AllOf, &Schema{
			If:   &Schema{Properties: map[string]*Schema{"kind": {Const: name}}, Required: []string{"kind"}},
			Then: kinds[name],
		})
	}
	return s
}

// Encode writes the schema of a file.
func (s *Schema) Encode(title string) []byte {
	file := *s
	file.Schema, file.Title = Draft, title
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(&file); err != nil {
		panic(fmt.Sprintf("jsonschema: %v", err)) // values of ours
	}
	return b.Bytes()
}
