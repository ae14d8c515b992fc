// Package check validates YAML against a JSON Schema, for tests: an implementation that
// is not Weft's own says what an editor would say.
package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema is a compiled schema.
type Schema struct {
	compiled *jsonschema.Schema
	text     map[string]any
}

// Compile compiles a schema, which must be valid by the draft that it names.
func Compile(text []byte) (*Schema, error) {
	s := &Schema{}
	if err := json.Unmarshal(text, &s.text); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", bytes.NewReader(text)); err != nil {
		return nil, err
	}
	var err error
	s.compiled, err = c.Compile("schema.json")
	return s, err
}

// CheckYAML returns what is wrong with a file, by the schema.
func (s *Schema) CheckYAML(file []byte) error {
	var v any
	if err := yaml.Unmarshal(file, &v); err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	if err := s.compiled.Validate(v); err != nil {
		return fmt.Errorf("%#v", err) // with the details
	}
	return nil
}

// WithoutDescription returns the paths of keys that say nothing about themselves.
func (s *Schema) WithoutDescription() (list []string) {
	describe(s.text, "", &list)
	slices.Sort(list)
	return slices.Compact(list)
}

func describe(v any, path string, list *[]string) {
	switch v := v.(type) {
	case map[string]any:
		if keys, ok := v["properties"].(map[string]any); ok {
			for key, one := range keys {
				at := path + "." + key
				if m, ok := one.(map[string]any); ok && m["description"] == nil && m["const"] == nil {
					*list = append(*list, at)
				}
				describe(one, at, list)
			}
		}
		for key, one := range v {
			if key != "properties" {
				describe(one, path, list)
			}
		}
	case []any:
		for _, one := range v {
			describe(one, path, list)
		}
	}
}
