package scenario

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// The structs that files are decoded into are the schema: a field's yaml tag is
// its key, its initial value is the default, and its type determines the
// values. Unknown keys are rejected.

// Position is a file and line. It is zero for what was made in Go.
type Position = fileerror.Position

// sourcePos is embedded in those structs and holds the lines of the mapping and
// its keys, so that later errors have a position.
type sourcePos struct {
	Position
	keys map[string]int // lines
}

func (o *sourcePos) from() *sourcePos { return o }

// has reports whether the file has a key.
func (o *sourcePos) has(key string) bool { return o.keys[key] > 0 }

// position returns the line of a key's value, or of the mapping if it lacks the
// key.
func (o *sourcePos) position(key string) Position {
	if line := o.keys[key]; line > 0 {
		return Position{File: o.File, Line: line}
	}
	return o.Position
}

// errorf returns an error about the value of a key.
func (o *sourcePos) errorf(key, format string, args ...any) *fileerror.Error {
	return o.position(key).Errorf(format, args...)
}

// selfDecoder is a type that decodes itself.
type selfDecoder interface {
	decode(v tree.Value, what string) error
}

// decode reads v into a pointer. what names it in errors.
func decode(v tree.Value, into any, what string) error {
	switch p := into.(type) {
	case selfDecoder:
		return p.decode(v, what)
	case *string:
		return scalar(v, what, "", func(s string) (err error) { *p = strings.TrimSpace(s); return nil })
	case *bool:
		return scalar(v, what, "on or off", func(s string) (err error) { *p, err = parseSwitch(s); return err })
	case *time.Duration:
		return scalar(v, what, "a duration such as 10us, at most "+MaxDuration.String(),
			func(s string) (err error) { *p, err = parseSpan(s); return err })
	case *model.Time:
		return scalar(v, what, "a time since the start of the run such as 10us", func(s string) error {
			d, err := parseSpan(strings.TrimPrefix(s, "+"))
			*p = model.Time(d)
			return err
		})
	case *model.Bytes:
		return scalar(v, what, "a size such as 500KB or 4KiB", func(s string) (err error) {
			if *p, err = model.ParseBytes(s); *p < 0 {
				err = errInvalid
			}
			return err
		})
	case *traffic.Transport:
		return scalar(v, what, "rdma, tcp or udp", func(s string) (err error) {
			*p,
				err = traffic.ParseTransport(s)
			return err
		})
	case *collective.Op:
		return scalar(v, what, strings.Join(collective.OpNames(), ", "), func(s string) error { return p.UnmarshalText([]byte(s)) })
	case *collective.Algorithm:
		return scalar(v, what, strings.Join(collective.AlgorithmNames(), ", "), func(s string) error { return p.UnmarshalText([]byte(s)) })
	case *model.Priority:
		return scalar(v, what, "0 to 7", func(s string) error {
			n, err := strconv.ParseUint(s, 10, 8)
			if *p = model.Priority(n); n > 7 {
				err = errInvalid
			}
			return err
		})
	case *model.Rate:
		return scalar(v, what, "a rate such as 25Gb/s", func(s string) (err error) {
			if *p, err = model.ParseRate(s); *p < 0 {
				err = errInvalid
			}
			return err
		})
	}
	return decodeKind(v, reflect.ValueOf(into).Elem(), what)
}

// decodeKind decodes a value by the kind of its type.
func decodeKind(v tree.Value, into reflect.Value, what string) error {
	switch into.Kind() {
	case reflect.Struct:
		return decodeStruct(v, into, what)
	case reflect.Slice:
		parts, err := listItems(v, what)
		if err != nil {
			return err
		}
		into.Set(reflect.MakeSlice(into.Type(), len(parts), len(parts)))
		for i, part := range parts {
			if err := decode(part, into.Index(i).Addr().Interface(), fmt.Sprintf("%s, item %d", what, i+1)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return scalar(v, what, "a whole number", func(s string) error {
			n, err := strconv.ParseInt(s, 10, into.Type().Bits())
			into.SetInt(n)
			return err
		})
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want := fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-into.Type().Bits()))
		return scalar(v, what, want, func(s string) error {
			n, err := strconv.ParseUint(s, 10, into.Type().Bits())
			into.SetUint(n)
			return err
		})
	case reflect.Float64:
		return scalar(v, what, "a number", func(s string) error {
			n, err := parseNumber(s)
			into.SetFloat(n)
			return err
		})
	}
	panic(fmt.Sprintf("scenario: cannot decode a %v", into.Type()))
}

func decodeStruct(v tree.Value, into reflect.Value, what string) error {
	fields, order := fieldsOf(into)
	from, err := decodeFields(v, fields, order, what)
	if err != nil {
		return err
	}
	if o, ok := into.Addr().Interface().(interface{ from() *sourcePos }); ok {
		*o.from() = *from
	}
	return nil
}

// decodeFields reads a mapping into pointers by key. order lists the keys for
// errors.
func decodeFields(v tree.Value, fields map[string]any, order []string, what string) (*sourcePos, error) {
	list, err := v.Entries(what)
	if err != nil {
		return nil, err
	}
	from := &sourcePos{Position: v.Position, keys: make(map[string]int, len(list))}
	for _, e := range list {
		field, ok := fields[e.Key]
		if !ok {
			return nil, e.KeyPosition().Errorf("unknown key %q in %s, want one of %s", e.Key, what, strings.Join(order, ", "))
		}
		from.keys[e.Key] = e.Line
		if err := decode(e.Value, field, e.Key); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// fieldsOf lists pointers to the fields of a struct by key, those of embedded
// structs among them, and the keys in order.
func fieldsOf(s reflect.Value) (fields map[string]any, order []string) {
	fields = make(map[string]any)
	for i := range s.NumField() {
		f := s.Type().Field(i)
		if key := f.Tag.Get("yaml"); key != "" {
			fields[key] = s.Field(i).Addr().Interface()
			order = append(order, key)
		} else if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[sourcePos]() {
			inner, keys := fieldsOf(s.Field(i))
			for k, p := range inner {
				fields[k] = p
			}
			order = append(order, keys...)
		}
	}
	return fields, order
}

// decodeByKind reads a mapping into the struct of its kind.
func decodeByKind[S any](v tree.Value, what string, kinds map[string]func() S) (spec S, err error) {
	list, err := v.Entries(what)
	if err != nil {
		return spec, err
	}
	wanted := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
	for _, e := range list {
		if e.Key != "kind" {
			continue
		}
		name, err := e.Text("kind")
		if err != nil {
			return spec, err
		}
		make, ok := kinds[name]
		if !ok {
			return spec, e.Errorf("kind %q, want one of %s", name, wanted)
		}
		spec = make()
		return spec, decodeStruct(v, reflect.ValueOf(spec).Elem(), name)
	}
	return spec, v.Errorf("%s has no kind, want one of %s", what, wanted)
}

// listItems returns the items of a list. A single value is a list of itself.
func listItems(v tree.Value, what string) ([]tree.Value, error) {
	if v.IsText() {
		return []tree.Value{v}, nil
	}
	return v.List(what)
}

// scalar reads a single value.
func scalar(v tree.Value, what, want string, read func(string) error) error {
	s, err := v.Text(what)
	if err != nil {
		return err
	}
	if read(strings.TrimSpace(s)) != nil {
		return v.Errorf("%s %q, want %s", what, s, want)
	}
	return nil
}

// errInvalid says that a value is invalid; scalar adds what is wanted.
var errInvalid = fmt.Errorf("invalid")

func parseSwitch(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "on", "true", "yes":
		return true, nil
	case "off", "false", "no":
		return false, nil
	}
	return false, errInvalid
}

func parseSpan(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > MaxDuration {
		return 0, errInvalid
	}
	return d, nil
}

// MaxDuration is the maximum duration of a run, and the maximum of any time in
// it. Sums of a few are within the simulator's range.
const MaxDuration = time.Duration(traffic.MaxTime)

// parseNumber reads a decimal number. Unlike strconv it accepts neither
// infinities nor hexadecimal digits.
func parseNumber(s string) (float64, error) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, errInvalid
	}
	return strconv.ParseFloat(s, 64)
}
