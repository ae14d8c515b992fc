package fieldcodec

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type inner struct {
	Name string
	N    int64
}

type outer struct {
	A     uint64
	B     uint16
	C     int
	D     bool
	E     float64
	F     []byte
	W     []uint64
	Inner []inner
	Rows  []row // coded as columns
}

type row struct{ A, B uint64 }

func (o *outer) code(c *Coder) {
	c.Uint64(&o.A)
	Unsigned(c, &o.B)
	Signed(c, &o.C)
	c.Bool(&o.D)
	c.Float64(&o.E)
	c.Bytes(&o.F)
	c.Words(&o.W)
	Slice(c, &o.Inner, func(i *inner) { c.String(&i.Name); c.Int64(&i.N) })
	n := c.Length(len(o.Rows), 2)
	if c.Reading() && n > 0 {
		o.Rows = make([]row, n)
	}
	Column(c, o.Rows, math.MaxUint64, func(r *row) uint64 { return r.A }, func(r *row, v uint64) { r.A = v })
	Column(c, o.Rows, 1<<20, func(r *row) uint64 { return r.B }, func(r *row, v uint64) { r.B = v })
}

func sample() outer {
	return outer{
		A: math.MaxUint64, B: 65535, C: -7, D: true, E: -1.5, F: []byte("bytes"), W: []uint64{1, math.MaxUint64},
		Inner: []inner{{"a", math.MinInt64}, {"", math.MaxInt64}},
		Rows:  []row{{0, 1}, {math.MaxUint64, 300}, {7, 1 << 20}},
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	w := NewWriter(nil)
	want.code(w)
	var got outer
	r := NewReader(w.Written())
	got.code(r)
	if err := r.End(); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("read %+v, %v; want %+v", got, err, want)
	}
	for n := range w.Written() {
		r := NewReader(w.Written()[:n])
		var part outer
		if part.code(r); !errors.Is(r.End(), ErrShort) && r.Err() == nil {
			t.Errorf("the first %d bytes are read as %+v; want an error", n, part)
		}
	}
}

func TestNarrowTypesAreChecked(t *testing.T) {
	w := NewWriter(nil)
	u := uint64(70000)
	w.Uint64(&u)
	var b uint16
	if r := NewReader(w.Written()); true {
		if Unsigned(r, &b); r.Err() == nil {
			t.Errorf("70000 is read as %d; want an error", b)
		}
	}
}

func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(0, 64).Draw(t, "bits")
		most := uint64(1)<<bits - 1 // of 64 bits too: a shift by 64 is 0
		list := rapid.SliceOf(rapid.Uint64Range(0, most)).Draw(t, "list")
		code := func(c *Coder, list []uint64, limit uint64) {
			Column(c, list, limit, func(v *uint64) uint64 { return *v }, func(v *uint64, n uint64) { *v = n })
		}
		w := NewWriter([]byte{9})
		code(w, list, math.MaxUint64)
		rest := rapid.SliceOf(rapid.Byte()).Draw(t, "rest")
		got, r := make([]uint64, len(list)), NewReader(append(w.Written()[1:], rest...))
		if code(r, got, most); r.Err() != nil || !slices.Equal(got, list) || len(r.Rest()) != len(rest) {
			t.Fatalf("%d is read as %d, %v, with %d bytes left; want %d", list, got, r.Err(), len(r.Rest()), len(rest))
		}
		if len(list) == 0 {
			return
		}
		if size := len(list)*max(1, (bits+7)/8) + 1; len(w.Written())-1 > size {
			t.Fatalf("%d numbers of %d bits take %d bytes; want at most %d", len(list), bits, len(w.Written())-1, size)
		}
		if largest := slices.Max(list); largest > 0 {
			if r := NewReader(w.Written()[1:]); true {
				if code(r, got, largest-1); r.Err() == nil {
					t.Fatalf("%d is read with the limit %d; want an error", list, largest-1)
				}
			}
		}
	})
}

func TestLengthIsChecked(t *testing.T) {
	w := NewWriter(nil)
	w.Length(4, 3)
	for extra, want := range map[int]bool{11: false, 12: true} {
		r := NewReader(append(w.Written(), make([]byte, extra)...))
		if n := r.Length(0, 3); (r.Err() == nil) != want || want && n != 4 {
			t.Errorf("4 elements of 3 columns before %d bytes: %d, %v", extra, n, r.Err())
		}
	}
}

// FuzzRead reads anything; what is read is written back the same.
func FuzzRead(f *testing.F) {
	o := sample()
	w := NewWriter(nil)
	o.code(w)
	f.Add(w.Written())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got outer
		r := NewReader(data)
		got.code(r)
		if r.End() != nil {
			return
		}
		w := NewWriter(nil)
		got.code(w)
		var again outer
		r = NewReader(w.Written())
		again.code(r)
		if again.E != again.E && got.E != got.E { // NaN
			again.E, got.E = 0, 0
		}
		if r.End() != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v is written and read as %+v, %v", got, again, r.Err())
		}
	})
}
