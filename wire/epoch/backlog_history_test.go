package epoch

import (
	"errors"
	"testing"
)

var sampleHistory = BacklogHistory{
	In: 2, Out: 1, Priority: 3, Cut: true, Count: 3,
	List: [MaxBacklogPoints]BacklogPoint{{At: 0x3000}, {At: 0x2000, Bytes: 0x10000}, {At: 0x2000, Bytes: 0x99}},
}

const historyHex = "0f 20 0002 0001 03 01 00003000 00000000 00002000 00010000 00002000 00000099"

func TestBacklogHistory(t *testing.T) {
	testRecord(t, historyHex, sampleHistory, BacklogHistory{In: 1, Out: 2, Count: 1}, map[int]byte{6: 8, 7: 2})
	full := sampleHistory
	for range 2 * MaxBacklogPoints {
		full.Add(BacklogPoint{Bytes: 7}) // beyond 24 it is ignored
	}
	b := full.AppendTo(nil)
	var got BacklogHistory
	if n, err := got.Parse(b); n != BacklogHistorySize(MaxBacklogPoints) || len(b) != n || err != nil || got != full {
		t.Errorf("Parse(%x) = %d, %v, %+v; want %+v", b, n, err, got, full)
	}
}

// TestTimeDoesNotRunBackwards: a switch whose points are out of order is broken
// or lies.
func TestTimeDoesNotRunBackwards(t *testing.T) {
	h := sampleHistory
	h.List[2].At = 0x2001
	if _, err := h.Parse(h.AppendTo(nil)); !errors.Is(err, ErrBacklogHistory) || h != (BacklogHistory{}) {
		t.Errorf("Parse = %v, %+v; want ErrBacklogHistory and nothing", err, h)
	}
}

func FuzzBacklogHistory(f *testing.F) { fuzzRecord[BacklogHistory](f, historyHex) }
