package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/jsonschema"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/file"
)

// JSONSchema is the JSON Schema of scenario files, made of the structs that files are
// decoded into.
func JSONSchema() []byte {
	sc := defaultSchema()
	s := structSchema(reflect.ValueOf(&sc).Elem(), "file")
	s.Required = []string{"duration", "topology"}
	return s.Encode("Weft scenario")
}

// selfDescriber is a selfDecoder whose values are no plain text.
type selfDescriber interface{ jsonSchema() *jsonschema.Schema }

// valueSchema describes a value of a type, with the default that it has now.
func valueSchema(v reflect.Value, in string) *jsonschema.Schema {
	switch p := v.Addr().Interface().(type) {
	case selfDescriber:
		return p.jsonSchema()
	case *ref, *string:
		return jsonschema.Text("")
	case *bool:
		s := jsonschema.Switch("")
		s.Default = onOff(*p)
		return s
	case *time.Duration:
		return withDefault(durationSchema(), *p, *p != 0)
	case *signedSpan, *pauseTime, *model.Time:
		return durationSchema()
	case *model.Bytes:
		return withDefault(jsonschema.Scalar("a size such as 500KB or 4KiB"), *p, *p != 0)
	case *model.Rate:
		return withDefault(jsonschema.Scalar("a rate such as 25Gb/s"), *p, *p != 0)
	case *autoBytes:
		return jsonschema.Scalar("auto or a size such as 40KB")
	case *share:
		return withDefault(jsonschema.Scalar("a share such as 0.3 or 30%"), float64(*p), *p != 0)
	case *drift:
		return jsonschema.Scalar("parts per million such as 5ppm")
	case *alphaShift:
		return withDefault(jsonschema.Scalar("1, 1/2, 1/4, … or 1/1024"), fmt.Sprintf("1/%d", 1<<*p), true)
	case *traffic.Transport:
		return withDefault(jsonschema.Words("", "rdma", "tcp", "udp"), *p, true)
	case *collective.Op:
		return withDefault(jsonschema.Words("", collective.OpNames()...), *p, true)
	case *collective.Algorithm:
		return withDefault(jsonschema.Words("", collective.AlgorithmNames()...), *p, true)
	case *model.Priority:
		return withDefault(jsonschema.Number("0 to 7"), int(*p), true)
	}
	switch v.Kind() {
	case reflect.Struct:
		return structSchema(v, in)
	case reflect.Slice:
		item := valueSchema(reflect.New(v.Type().Elem()).Elem(), in)
		if item.Properties != nil {
			return jsonschema.List(item)
		}
		return jsonschema.OneOrMore(item)
	case reflect.Float64:
		return withDefault(jsonschema.Scalar("a number"), v.Float(), v.Float() != 0)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return withDefault(jsonschema.Number(""), v.Interface(), !v.IsZero())
	}
	panic(fmt.Sprintf("scenario: no schema of a %v", v.Type()))
}

func durationSchema() *jsonschema.Schema { return jsonschema.Scalar("a duration such as 10us") }

func withDefault(s *jsonschema.Schema, value any, known bool) *jsonschema.Schema {
	if !known {
		return s
	}
	s.Default = value
	if text, ok := value.(fmt.Stringer); ok {
		s.Default = text.String()
	}
	return s
}

// structSchema describes a mapping. In is what its keys are looked up by in keyDocs.
func structSchema(v reflect.Value, in string) *jsonschema.Schema {
	fields, _ := fieldsOf(v)
	out := jsonschema.Object(map[string]*jsonschema.Schema{})
	for key, p := range fields {
		s := valueSchema(reflect.ValueOf(p).Elem(), key)
		describeKey(s, in, key)
		out.Properties[key] = s
	}
	return out
}

// describeKey adds what a key means to the form of its value.
func describeKey(s *jsonschema.Schema, in, key string) {
	about, known := keyDocs[in+"."+key]
	if !known {
		about, known = keyDocs[key]
	}
	if known {
		s.Description = strings.TrimSuffix(about+"; "+s.Description, "; ")
	}
}

// kindSchema describes an item whose kind determines its keys.
func kindSchema[S any](kinds map[string]func() S, section string) *jsonschema.Schema {
	list, order := map[string]*jsonschema.Schema{}, slices.Sorted(maps.Keys(kinds))
	for _, name := range order {
		list[name] = structSchema(reflect.ValueOf(kinds[name]()).Elem(), name)
		list[name].Description = keyDocs[section+" "+name]
	}
	s := jsonschema.ByKind(list, order)
	s.Properties["kind"].Description = keyDocs["kind"]
	return s
}

func (*trafficItem) jsonSchema() *jsonschema.Schema { return kindSchema(trafficKinds, "traffic") }
func (*faultItem) jsonSchema() *jsonschema.Schema   { return kindSchema(faultKinds, "faults") }
func (*programItem) jsonSchema() *jsonschema.Schema { return kindSchema(programKinds, "telemetry") }

// jsonSchema describes what a topology file has, or the name of one.
func (*decodedElsewhere) jsonSchema() *jsonschema.Schema {
	s := file.JSONSchema()
	s.Properties["file"] = jsonschema.Text("a topology file instead, relative to the scenario")
	return s
}

func (f *flowSpec) jsonSchema() *jsonschema.Schema {
	f.class = classOf(traffic.DefaultClass())
	return structSchema(reflect.ValueOf(f).Elem(), "flow")
}

func (*labelProbability) jsonSchema() *jsonschema.Schema {
	list := jsonschema.List(jsonschema.Scalar("a share such as 0.3 or 30%"))
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{jsonschema.Words("", "always", "linear", "timed"), list}}
}

func (*ecnSpec) jsonSchema() *jsonschema.Schema {
	var c ecnCurve
	curve := structSchema(reflect.ValueOf(&c).Elem(), "ecn")
	curve.Required = []string{"kmin", "kmax", "pmax"}
	off := jsonschema.Words("", "off", "no", "false")
	off.Enum = append(off.Enum, false)
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{off, jsonschema.List(curve)}}
}

// jsonSchema describes an algorithm's name, or a mapping that changes its constants.
func (*congestionSpec) jsonSchema() *jsonschema.Schema {
	var names []string
	out := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{nil}}
	for _, a := range congestion.Algorithms() {
		names = append(names, a.Name)
		one := jsonschema.Object(map[string]*jsonschema.Schema{})
		if p := a.Default(); p != nil {
			one = structSchema(reflect.ValueOf(p).Elem(), a.Name)
			var presets []string
			for _, p := range a.Presets {
				presets = append(presets, p.Name)
			}
			one.Properties["preset"] = jsonschema.Words(keyDocs["preset"], presets...)
		}
		one.Properties["algorithm"] = jsonschema.Words(keyDocs["algorithm"], a.Name)
		one.Required = []string{"algorithm"}
		out.AnyOf = append(out.AnyOf, one)
	}
	out.AnyOf[0] = jsonschema.Words("", names...)
	return out
}

// jsonSchema describes figures and their conditions.
func (*expectSpec) jsonSchema() *jsonschema.Schema {
	conditions := func(group bool) *jsonschema.Schema {
		s := jsonschema.Object(map[string]*jsonschema.Schema{})
		for _, name := range figureNames(group) {
			about := "a number or a condition: above 0, below 5, at least 1, at most 3, 1 to 3"
			if words := figures[name].words; words != nil {
				about += "; or " + strings.Join(slices.Sorted(maps.Keys(words)), ", ")
			}
			s.Properties[name] = jsonschema.Scalar(about)
		}
		return s
	}
	none := jsonschema.Words("", "none")
	listOrNone := func(about string, item *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Description: about, AnyOf: []*jsonschema.Schema{none, jsonschema.List(item)}}
	}
	out := conditions(false)
	out.Properties["groups"] = jsonschema.Map(conditions(true))
	out.Properties["groups"].Description = "conditions by the name of traffic"
	var d diagnosisSpec
	out.Properties["diagnoses"] = listOrNone("diagnoses that must be among the results, or none", structSchema(reflect.ValueOf(&d).Elem(), "diagnosis"))
	var f findingSpec
	finding := structSchema(reflect.ValueOf(&f).Elem(), "finding")
	finding.Properties["kind"] = jsonschema.Words("what the traces must show", slices.Sorted(maps.Keys(findingKinds))...)
	out.Properties["traces"] = listOrNone("what mirrors must show, and all that they may", finding)
	return out
}
