package model

import "testing"

func TestMAC(t *testing.T) {
	want := MAC{2, 0, 0, 1, 0, 0xab}
	for _, in := range []string{"02:00:00:01:00:ab", "02-00-00-01-00-AB", "0200.0001.00ab"} {
		if got, err := ParseMAC(in); err != nil || got != want {
			t.Errorf("ParseMAC(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "02:00:00:01:00", "02:00:00:01:00:ab:cd:ef", "zz:00:00:01:00:ab"} {
		if got, err := ParseMAC(in); err == nil {
			t.Errorf("ParseMAC(%q) = %v, nil; want an error", in, got)
		}
	}
}
