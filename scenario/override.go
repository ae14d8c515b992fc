package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Override sets values in the text of a scenario, each as KEY=VALUE: the key is a path
// such as fabric.alpha or traffic.0.load, the value is YAML. Comments and the numbers of
// lines are lost.
func Override(text []byte, settings ...string) ([]byte, error) {
	if len(settings) == 0 {
		return text, nil
	}
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	for _, one := range settings {
		path, value, ok := strings.Cut(one, "=")
		if !ok || path == "" || slices.Contains(strings.Split(path, "."), "") {
			return nil, fmt.Errorf("setting %q, want KEY=VALUE such as fabric.alpha=1/4", one)
		}
		var v any
		if err := yaml.UnmarshalWithOptions([]byte(value), &v, yaml.UseOrderedMap()); err != nil {
			return nil, fmt.Errorf("setting %s: value %q is not YAML", path, value)
		}
		set, err := setPath(doc, strings.Split(path, "."), v)
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", path, err)
		}
		doc = set.(yaml.MapSlice)
	}
	return yaml.Marshal(doc)
}

// setPath returns a node with a value at a path below it. Maps on the path are made,
// items of lists are not.
func setPath(node any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch n := node.(type) {
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(n) {
			return nil, fmt.Errorf("item %q of a list, want 0 to %d", path[0], len(n)-1)
		}
		n[i], err = setPath(n[i], path[1:], value)
		return n, err
	case nil:
		return setPath(yaml.MapSlice{}, path, value)
	case yaml.MapSlice:
		for i := range n {
			if n[i].Key == path[0] {
				var err error
				n[i].Value, err = setPath(n[i].Value, path[1:], value)
				return n, err
			}
		}
		below, err := setPath(nil, path[1:], value)
		return append(n, yaml.MapItem{Key: path[0], Value: below}), err
	}
	return nil, fmt.Errorf("%v has no %q, want the key of a section or a number of a list", node, path[0])
}
