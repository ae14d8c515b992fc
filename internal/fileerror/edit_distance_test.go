package fileerror

import "testing"

func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}:              0,
		{"", "abc"}:           3,
		{"path", "path"}:      0,
		{"pathh", "path"}:     1,
		{"kitten", "sitting"}: 3,
		{"ab", "ba"}:          2,
	} {
		if got, back := EditDistance(pair[0], pair[1]), EditDistance(pair[1], pair[0]); got != want || back != want {
			t.Errorf("EditDistance(%q, %q) = %d, reversed %d; want %d", pair[0], pair[1], got, back, want)
		}
	}
}
