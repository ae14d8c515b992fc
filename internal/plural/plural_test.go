package plural

import "testing"

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 flows":    Count(0, "flow"),
		"1 flow":     Count(1, "flow"),
		"2 flows":    Count(uint64(2), "flow"),
		"1 switch":   Count(1, "switch"),
		"3 switches": Count(3, "switch"),
		"paths":      Noun(2, "path"),
		"diagnoses":  Noun(0, "diagnosis"),
	} {
		if got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
