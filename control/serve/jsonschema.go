package serve

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/jsonschema"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// JSONSchema is the JSON Schema of configuration files, made of the settings and lists
// that files are read by.
func JSONSchema() []byte {
	root, defaults := jsonschema.Object(map[string]*jsonschema.Schema{}), DefaultConfig()
	for i := range settings {
		s := &settings[i]
		place(root, s.Key, s.schema(&defaults))
	}
	for i := range itemLists {
		place(root, itemLists[i].key, itemLists[i].schema())
	}
	ages := map[string]*jsonschema.Schema{}
	for _, kind := range store.Kinds() {
		age := jsonschema.Scalar(fmt.Sprintf("how long records of kind %s are kept: an age such as 12h or 30d, or forever", kind))
		if d, bounded := defaults.Store.Retention[kind]; bounded {
			age.Default = d.String()
		}
		ages[string(kind)] = age
	}
	retention := jsonschema.Object(ages)
	retention.Description = "ages by kind of record"
	place(root, retentionKey, retention)
	return root.Encode("Configuration of weft serve")
}

// place puts a schema at a key of a file, below the sections that the key names.
func place(root *jsonschema.Schema, key string, s *jsonschema.Schema) {
	section, rest, nested := strings.Cut(key, ".")
	if !nested {
		root.Properties[key] = s
		return
	}
	if root.Properties[section] == nil {
		root.Properties[section] = jsonschema.Object(map[string]*jsonschema.Schema{})
		root.Properties[section].Type = []string{"object", "null"} // a section may be empty
		root.Properties[section].Description = "settings of " + section
	}
	place(root.Properties[section], rest, s)
}

// schema describes the value of a setting.
func (s *Setting) schema(defaults *Config) (out *jsonschema.Schema) {
	about := s.About
	if s.Reload {
		about += " (reloaded with SIGHUP)"
	}
	switch s.at(defaults).(type) {
	case *bool:
		out = jsonschema.Words(about, "true", "false")
		out.Enum = append(out.Enum, true, false)
	case *int:
		out = jsonschema.Number(about)
	case *time.Duration:
		out = jsonschema.Scalar(about + "; a duration such as 10ms")
		out.Pattern = "^ *-?([0-9]+(\\.[0-9]*)?(ns|us|µs|ms|s|m|h))+ *$|^ *0 *$"
	case *model.Bytes:
		out = jsonschema.Scalar(about + "; a size such as 32MiB")
	case *[]string, *[]netip.Prefix:
		out = jsonschema.OneOrMore(jsonschema.Text(""))
		out.Description = about
	default:
		out = jsonschema.Text(about)
		out.Type = []string{"string", "number", "boolean", "null"}
	}
	if value := s.Value(defaults); value != "" {
		out.Default = value
	}
	return out
}

// schema describes a list.
func (l *itemList) schema() *jsonschema.Schema {
	fields := map[string]*jsonschema.Schema{}
	for _, f := range l.fields {
		switch {
		case f.words != nil:
			fields[f.key] = jsonschema.Words(f.about, f.words...)
		case f.list:
			fields[f.key] = jsonschema.OneOrMore(jsonschema.Text(""))
			fields[f.key].Description = f.about
		default:
			fields[f.key] = jsonschema.Text(f.about)
		}
	}
	out := jsonschema.List(jsonschema.Object(fields))
	out.Description = l.about
	return out
}
