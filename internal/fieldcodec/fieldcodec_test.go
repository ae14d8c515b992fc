package fieldcodec

import (
	"errors"
	"math"
	"reflect"
	"testing"
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
}

func (o *outer) code(c *Coder) {
	c.Uint64(&o.A)
	Unsigned(c, &o.B)
	Signed(c, &o.C)
	c.Bool(&o.D)
	c.Float64(&o.E)
	c.Bytes(&o.F)
	c.Words(&o.W)
	Slice(c, &o.Inner, func(i *inner) { c.String(&i.Name); c.Int64(&i.N) })
}

func sample() outer {
	return outer{
		A: math.MaxUint64, B: 65535, C: -7, D: true, E: -1.5, F: []byte("bytes"), W: []uint64{1, math.MaxUint64},
		Inner: []inner{{"a", math.MinInt64}, {"", math.MaxInt64}},
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
