package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Field is a field of a record.
type Field[T any] struct {
	Name  string // words of a-z, 0-9 and _ with dots between them
	Type  Type
	About string // a one-line description
	// Names are names of numbers of an Int. For a Text they are all its possible
	// values, if the caller knows them.
	Names map[string]int64
	// Get returns the i-th value that a record has of this field, and whether
	// there is one. Most have one or none; an address that is the source or the
	// destination has two.
	Get func(r *T, i int) (Value, bool)
}

// SingleValue makes a Get from a function, for fields that always have one value.
func SingleValue[T any](get func(r *T) Value) func(*T, int) (Value, bool) {
	return func(r *T, i int) (Value, bool) {
		if i > 0 {
			return Value{}, false
		}
		return get(r), true
	}
}

// Schema is the fields of a kind of record. It is immutable.
type Schema[T any] struct {
	words vocabulary
	list  []Field[T]
}

// NewSchema returns a schema. resolve, which may be nil, resolves names of
// addresses, as in "ip.src == h0". A field with an invalid or duplicate name is
// the caller's mistake and panics.
func NewSchema[T any](fields []Field[T], resolve func(name string) (model.Addr, bool)) *Schema[T] {
	s := &Schema[T]{list: fields, words: vocabulary{index: map[string]int{}, resolve: resolve}}
	for i := range fields {
		f := &fields[i]
		_, keyword := keywords[f.Name]
		_, twice := s.words.index[f.Name]
		if f.Name == "" || keyword || twice || wordLen(f.Name) != len(f.Name) || f.Get == nil {
			panic(fmt.Sprintf("filter: field %q has an invalid or duplicate name, or no Get", f.Name))
		}
		s.words.index[f.Name] = i
		s.words.fields = append(s.words.fields, field{f.Name, f.Type, f.About, f.Names})
	}
	if len(fields) == 0 {
		panic("filter: a schema without fields")
	}
	return s
}

// Fields returns the fields. The slice must not be changed.
func (s *Schema[T]) Fields() []Field[T] { return s.list }

// Parse parses a filter. An empty text matches all records. Its error is an *Error.
func (s *Schema[T]) Parse(text string) (*Filter[T], error) {
	n, _, err := s.words.parse(text)
	if err != nil {
		return nil, err
	}
	return &Filter[T]{s, n}, nil
}

// Columns are the fields whose values are shown.
type Columns[T any] struct {
	schema *Schema[T]
	at     []int
}

// Columns returns the columns of named fields. Its error is an *Error about the
// comma-separated names.
func (s *Schema[T]) Columns(names ...string) (*Columns[T], error) {
	c := &Columns[T]{schema: s}
	text := strings.Join(names, ",")
	at := 0
	for _, name := range names {
		i, ok := s.words.index[name]
		if !ok {
			return nil, &Error{
				Text: text, At: at, End: at + len(name),
				Problem: "unknown field " + strconv.Quote(name), Want: s.words.suggestFields(name),
			}
		}
		c.at = append(c.at, i)
		at += len(name) + 1
	}
	return c, nil
}

// Names returns the names of the columns.
func (c *Columns[T]) Names() (names []string) {
	for _, i := range c.at {
		names = append(names, c.schema.list[i].Name)
	}
	return names
}

// Row returns the values of a record; several values of one field are
// comma-separated.
func (c *Columns[T]) Row(r *T) []string {
	row := make([]string, len(c.at))
	for n, at := range c.at {
		var b []byte
		for i := 0; ; i++ {
			v, ok := c.schema.list[at].Get(r, i)
			if !ok {
				break
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = c.schema.words.fields[at].appendPlain(b, &v)
		}
		row[n] = string(b)
	}
	return row
}

// appendPlain appends a value for display: as in a filter, but without quotes.
func (f *field) appendPlain(b []byte, x *Value) []byte {
	if f.typ == Text {
		return append(b, x.Text...)
	}
	if name, ok := f.nameOf(x.Int); ok && f.typ == Int {
		return append(b, name...)
	}
	return f.appendValue(b, x)
}
