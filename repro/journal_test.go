package repro

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/repro/claim"
)

// A journal returns what was added under the same conditions, also after its last
// line was cut off, and refuses a file that it has not written.
func TestJournalContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	under := Conditions{Seed: 7, Quick: true, Build: "1.2.3"}
	open := func(c Conditions) *Journal {
		t.Helper()
		j, err := OpenJournal(path, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	one := Outcome{ID: "a-one", Pass: true, Measured: "1", Tables: []claim.Table{{Title: "t", Rows: [][]string{{"x"}}}}}
	two := Outcome{ID: "a-two", Error: "broken"}
	j := open(under)
	for _, o := range []Outcome{one, two} {
		if err := j.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-5], 0o666); err != nil { // killed in the second line
		t.Fatal(err)
	}
	j = open(under)
	got, ok := j.Outcome("a-one")
	if diff := cmp.Diff(one, got); !ok || diff != "" {
		t.Errorf("after an interruption (-want +got):\n%s", diff)
	}
	if _, ok := j.Outcome("a-two"); ok {
		t.Error("a line that was cut off is an outcome")
	}
	if err := j.Add(two); err != nil {
		t.Fatal(err)
	}
	if _, ok := open(under).Outcome("a-two"); !ok {
		t.Error("an outcome that was added after an interruption is missing")
	}
	for _, other := range []Conditions{{8, true, "1.2.3"}, {7, false, "1.2.3"}, {7, true, "1.2.4"}} {
		if _, ok := open(other).Outcome("a-one"); ok {
			t.Errorf("an outcome is taken over to %+v", other)
		}
	}
	if err := os.WriteFile(path, []byte("{\"claims\": []}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, under); err == nil || !strings.Contains(err.Error(), "line 1 is no outcome of a claim") {
		t.Errorf("another file is taken for a journal: %v", err)
	}
}

// Parts of a claim are measured once, whether or not the claim came to its end, and
// those of other claims or conditions do not count.
func TestJournalKeepsParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	under := Conditions{Seed: 7, Build: "1.2.3"}
	measured := 0
	once := func(c Conditions, id, key string) int {
		t.Helper()
		j, err := OpenJournal(path, c)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		got, err := claim.Once(claim.Options{Parts: j.Parts(id)}, key, func() (int, error) {
			measured++
			return 100 + measured, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, x := range []struct {
		under   Conditions
		id, key string
		want    int
	}{
		{under, "a-one", "x", 101},
		{under, "a-one", "x", 101},
		{under, "a-one", "y", 102},
		{under, "a-two", "x", 103},
		{Conditions{Seed: 8, Build: "1.2.3"}, "a-one", "x", 104},
		{under, "a-one", "y", 102},
	} {
		if got := once(x.under, x.id, x.key); got != x.want {
			t.Errorf("part %s of %s, %+v: %d; want %d", x.key, x.id, x.under, got, x.want)
		}
	}
}
