package filter

import (
	"cmp"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Type is the type of a field's values.
type Type uint8

// Types.
const (
	Bool     Type = iota
	Int           // 5, 0x1f, or a name from Field.Names
	Float         // 0.5 or 50%
	Duration      // 1.5ms
	Bytes         // 100KB, 4KiB
	Rate          // 10Gb/s
	IPv4          // 10.0.0.1, or a prefix such as 10.0.0.0/8
	IPv6
	Addr // of either family
	MAC  // 02:00:00:00:00:01
	Text
)

// types describe each Type: its name, and its valid values.
var types = [...]struct{ name, want string }{
	Bool:     {"boolean", "true or false"},
	Int:      {"number", "a number such as 5 or 0x1f"},
	Float:    {"ratio", "a number such as 0.5 or 50%"},
	Duration: {"duration", "a duration such as 1.5ms"},
	Bytes:    {"size", "a size such as 100KB"},
	Rate:     {"rate", "a rate such as 10Gb/s"},
	IPv4:     {"IPv4 address", "an IPv4 address or a prefix, such as 10.0.0.0/8"},
	IPv6:     {"IPv6 address", "an IPv6 address or a prefix, such as 2001:db8::/32"},
	Addr:     {"address", "an IP address or a prefix"},
	MAC:      {"MAC address", "a MAC address such as 02:00:00:00:00:01"},
	Text:     {"text", "a word, or text in quotes"},
}

// String returns the type's name for display.
func (t Type) String() string { return types[t].name }

// Value is a value of any type: Int holds all integers, Bool as 0 and 1, Duration
// in nanoseconds, Rate in bits per second. It holds no pointer but Text's, so
// that reading one allocates nothing.
type Value struct {
	Int   int64
	Float float64
	Addr  model.Addr
	Text  string
}

// IntValue returns the value of an integer, or of a type based on one.
func IntValue[N ~int | ~int64 | ~int32 | ~uint8 | ~uint16 | ~uint32](n N) Value {
	return Value{Int: int64(n)}
}

// BoolValue returns the value of a Bool.
func BoolValue(b bool) Value {
	if b {
		return Value{Int: 1}
	}
	return Value{}
}

// AddrValue returns the value of an IPv4, IPv6 or Addr.
func AddrValue(a model.Addr) Value { return Value{Addr: a} }

// MACValue returns the value of a MAC.
func MACValue(m model.MAC) (v Value) {
	for _, b := range m {
		v.Int = v.Int<<8 | int64(b)
	}
	return v
}

// TextValue returns the value of a Text.
func TextValue(s string) Value { return Value{Text: s} }

// compare orders two values of one type.
func (t Type) compare(a, b *Value) int {
	switch t {
	case Float:
		return cmp.Compare(a.Float, b.Float)
	case IPv4, IPv6, Addr:
		return a.Addr.Compare(b.Addr)
	case Text:
		return strings.Compare(a.Text, b.Text)
	}
	return cmp.Compare(a.Int, b.Int)
}

// ordered reports whether "<" is defined.
func (t Type) ordered() bool { return t != Bool && t != Text && t != MAC }

// isAddress reports whether values are IP addresses.
func (t Type) isAddress() bool { return t == IPv4 || t == IPv6 || t == Addr }

// span is all values from lo to hi. One value is a span, and so is a prefix.
type span struct{ lo, hi Value }

func (s *span) contains(t Type, v *Value) bool {
	return t.compare(&s.lo, v) <= 0 && t.compare(v, &s.hi) <= 0
}

func (s *span) single(t Type) bool { return t.compare(&s.lo, &s.hi) == 0 }

var errValue = errors.New("not a value of the field")

// parseLiteral parses a literal into a span.
func (v *vocabulary) parseLiteral(f *field, text string) (span, error) {
	var x Value
	var err error
	switch f.typ {
	case Bool:
		x.Int, err = parseBool(text)
	case Int:
		if n, ok := f.names[text]; ok {
			x.Int = n
		} else {
			x.Int, err = strconv.ParseInt(text, 0, 64)
		}
	case Float:
		x.Float, err = parseFloat(text)
	case Duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		x.Int = int64(d)
	case Bytes:
		var n model.Bytes
		n, err = model.ParseBytes(text)
		x.Int = int64(n)
	case Rate:
		var r model.Rate
		r, err = model.ParseRate(text)
		x.Int = int64(r)
	case IPv4, IPv6, Addr:
		return v.parseAddr(f.typ, text)
	case MAC:
		var m model.MAC
		m, err = model.ParseMAC(text)
		x = MACValue(m)
	case Text:
		if _, known := f.names[text]; f.names != nil && !known {
			err = errValue
		}
		x.Text = text
	}
	return span{x, x}, err
}

func parseBool(s string) (int64, error) {
	switch s {
	case "true", "1":
		return 1, nil
	case "false", "0":
		return 0, nil
	}
	return 0, errValue
}

func parseFloat(s string) (float64, error) {
	body, percent := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(body, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errValue
	}
	if percent {
		x /= 100
	}
	return x, err
}

// parseAddr parses an address, a prefix, or a name that the schema resolves.
func (v *vocabulary) parseAddr(t Type, text string) (span, error) {
	var p netip.Prefix
	if a, err := netip.ParseAddr(text); err == nil {
		p = netip.PrefixFrom(a, a.BitLen())
	} else if p, err = netip.ParsePrefix(text); err != nil {
		if v.resolve == nil {
			return span{}, err
		}
		a, ok := v.resolve(text)
		if !ok {
			return span{}, errValue
		}
		p = netip.PrefixFrom(a.Netip(), a.Netip().BitLen())
	}
	is4 := p.Addr().Unmap().Is4()
	if !p.IsValid() || p.Addr().Zone() != "" || t == IPv4 && !is4 || t == IPv6 && is4 || p.Addr().Is4In6() {
		return span{}, errValue
	}
	return prefixSpan(p), nil
}

func prefixSpan(p netip.Prefix) span {
	lo := model.AddrOf(p.Masked().Addr())
	hi := lo
	if host := p.Addr().BitLen() - p.Bits(); host >= 64 {
		hi.Lo, hi.Hi = math.MaxUint64, lo.Hi|(1<<(host-64)-1)
	} else {
		hi.Lo |= 1<<host - 1
	}
	return span{Value{Addr: lo}, Value{Addr: hi}}
}

// appendValue appends a value as parseLiteral takes it.
func (f *field) appendValue(b []byte, x *Value) []byte {
	switch f.typ {
	case Bool:
		return strconv.AppendBool(b, x.Int != 0)
	case Int:
		if name, ok := f.nameOf(x.Int); ok {
			return appendText(b, name)
		}
		return strconv.AppendInt(b, x.Int, 10)
	case Float:
		return strconv.AppendFloat(b, x.Float, 'g', -1, 64)
	case Duration:
		return append(b, time.Duration(x.Int).String()...)
	case Bytes:
		return append(b, model.Bytes(x.Int).String()...)
	case Rate:
		return append(b, model.Rate(x.Int).String()...)
	case IPv4, IPv6, Addr:
		return x.Addr.Netip().AppendTo(b)
	case MAC:
		var m model.MAC
		for i := range m {
			m[i] = byte(x.Int >> (8 * (5 - i)))
		}
		return append(b, m.String()...)
	}
	return appendText(b, x.Text)
}

// nameOf returns the first name of a number, in alphabetical order.
func (f *field) nameOf(n int64) (string, bool) {
	var names []string
	for name, of := range f.names {
		if of == n {
			names = append(names, name)
		}
	}
	if names == nil {
		return "", false
	}
	return slices.Min(names), true
}

// appendText appends a word, quoted if it would not be read as one.
func appendText(b []byte, s string) []byte {
	if _, keyword := keywords[s]; s != "" && !keyword && !strings.Contains(s, "..") &&
		strings.IndexFunc(s, notWord) < 0 {
		return append(b, s...)
	}
	return strconv.AppendQuote(b, s)
}

// appendSpan appends a span: one value, a prefix, or both ends.
func (f *field) appendSpan(b []byte, s *span) []byte {
	b = f.appendValue(b, &s.lo)
	if s.single(f.typ) {
		return b
	}
	if f.typ == IPv4 || f.typ == IPv6 || f.typ == Addr {
		a := s.lo.Addr.Netip()
		for bits := a.BitLen() - 1; bits >= 0; bits-- {
			if p := netip.PrefixFrom(a, bits); p.Masked() == p && prefixSpan(p) == *s {
				return strconv.AppendInt(append(b, '/'), int64(bits), 10)
			}
		}
	}
	return f.appendValue(append(b, ".."...), &s.hi)
}
