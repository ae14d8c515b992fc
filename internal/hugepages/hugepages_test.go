package hugepages

import (
	"slices"
	"testing"
)

// TestMakeIsMake: a slice is what make makes, small or large; advice changes nothing in it.
func TestMakeIsMake(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1 << 20} {
		list := Make[uint64](n)
		if len(list) != n || slices.ContainsFunc(list, func(v uint64) bool { return v != 0 }) {
			t.Errorf("Make(%d) has %d elements, or some that are not 0", n, len(list))
		}
		for i := range list {
			list[i] = uint64(i)
		}
		Advise(list)
		for i, v := range list {
			if v != uint64(i) {
				t.Fatalf("after Advise element %d of %d is %d", i, n, v)
			}
		}
	}
}
