package file

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/internal/jsonschema"
)

// TestJSONSchemaHasTheReadersKeys: a key that the reader refuses makes it list those
// that it takes; they are the schema's.
func TestJSONSchemaHasTheReadersKeys(t *testing.T) {
	s := JSONSchema()
	for name, tc := range map[string]struct {
		text string
		of   *jsonschema.Schema
	}{
		"file":     {"zzz: 1", s},
		"defaults": {"defaults: {zzz: 1}\nnodes: []", s.Properties["defaults"]},
		"node":     {"nodes: [{zzz: 1}]", s.Properties["nodes"].Items},
		"link":     {"nodes: [{name: a, role: host}]\nlinks: [{zzz: 1}]", s.Properties["links"].Items},
		"route":    {"nodes: [{name: a, role: host}]\nroutes: [{zzz: 1}]", s.Properties["routes"].Items},
	} {
		_, err := ParseAs(YAML, "t.yaml", []byte(tc.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v; want an error about the key", name, err)
			continue
		}
		_, list, _ := strings.Cut(e.Msg, "want one of ")
		got := slices.Sorted(slices.Values(strings.Split(list, ", ")))
		if want := slices.Sorted(maps.Keys(tc.of.Properties)); !slices.Equal(got, want) {
			t.Errorf("%s: the reader takes %q (%s), the schema %q", name, got, e.Msg, want)
		}
	}
}
