package keywrite

import "testing"

// A key that is written with fewer copies than before leaves its older value in the
// other slots, where it has the majority: so the redundancy of a key's reports must not fall
// while the key is in use.
func TestFewerCopiesLeaveTheOlderValue(t *testing.T) {
	tab, err := Open("", Config{Layout: Weft, Slots: 1 << 10, Value: 4, Check: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Region().Close()
	w := tab.Writer(0)
	for _, put := range []struct {
		value  string
		copies int
	}{{"old!", 4}, {"new!", 1}} {
		if err := w.Write([]byte("a key of a flow"), []byte(put.value), put.copies); err != nil {
			t.Fatal(err)
		}
	}
	a, err := tab.Read([]byte("a key of a flow"), Query{})
	if err != nil || a.Outcome != Found || string(a.Value) != "old!" || a.Votes != 3 {
		t.Errorf("read %v %q with %d votes, %v; want the older value with 3", a.Outcome, a.Value, a.Votes, err)
	}
}
