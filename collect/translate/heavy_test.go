package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

func increment(key string, delta uint64) dta.Report {
	return dta.Report{Primitive: dta.KeyIncrement, Redundancy: 2, Key: []byte(key), Delta: delta}
}

// heavyTranslator reports keys from 1000 on within a second to list 1.
func heavyTranslator(t *testing.T) (*Translator, *recorder) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Heavy = []HeavyKeys{{Above: 1000, Period: time.Second, List: 1}}
	out := &recorder{}
	tr, err := New(cfg, plan(t, list.Class{Lists: 1, Entry: 4, Capacity: 16}, list.Class{Lists: 1, Entry: MatchSize(0), Capacity: 16}), out)
	if err != nil {
		t.Fatal(err)
	}
	return tr, out
}

// heavyIn returns the keys and sums that were appended to list 1.
func heavyIn(t *testing.T, lines []string) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	for _, line := range lines {
		body, ok := strings.CutPrefix(line, "list 1 ")
		if !ok {
			continue
		}
		m, err := ParseMatch([]byte(strings.TrimSuffix(body, " true")))
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[string(m.Key)]; twice {
			t.Errorf("%s is reported twice", m.Key)
		}
		found[string(m.Key)] = m.Sum
	}
	return found
}

// A key is reported once a period, by the addition that makes it heavy, whichever way
// reports come; each addition is also written.
func TestHeavyKeysAreReportedOnce(t *testing.T) {
	tr, out := heavyTranslator(t)
	for i := range 40 {
		key := fmt.Sprintf("flow %02d", i%4)
		r := increment(key, uint64(30*(1+i%4))) // in ten rounds: 300, 600, 900, 1200
		if i%2 == 0 {
			tr.Put(0, []dta.Report{r})
		} else {
			tr.PutRun(0, &r, r.AppendTo(nil), 1)
		}
		if st := tr.Stats(); (st.Heavy == 1) != (i >= 35) { // the ninth round: 1080
			t.Fatalf("after addition %d: %+v; want flow 03 to be heavy from addition 35 on", i, st)
		}
	}
	lines := out.take()
	if got := fmt.Sprint(heavyIn(t, lines)); got != "map[flow 03:1080]" {
		t.Errorf("reported %s; want flow 03 with 1080", got)
	}
	if st := tr.Stats(); len(lines) != 41 || st.KeyIncrements != 40 || st.Additions != 40 {
		t.Errorf("%d writes, %+v; want 40 additions and an entry", len(lines), st)
	}
	later := model.Time(0).Add(time.Second)
	tr.Put(later, []dta.Report{increment("flow 03", 999)})
	if got := heavyIn(t, out.take()); len(got) != 0 {
		t.Errorf("in the next period %v is reported; want sums to begin at zero", got)
	}
	tr.Put(later, []dta.Report{increment("flow 03", 1)})
	if got := fmt.Sprint(heavyIn(t, out.take())); got != "map[flow 03:1000]" {
		t.Errorf("in the next period %s is reported; want flow 03 with 1000", got)
	}
}

func TestHeavyKeysNeedTheirList(t *testing.T) {
	p := plan(t, list.Class{Lists: 1, Entry: 4, Capacity: 16})
	for _, tc := range []struct {
		q    HeavyKeys
		want string
	}{
		{HeavyKeys{Above: 0, Period: 1}, "at least 1"},
		{HeavyKeys{Above: 1, Period: 0}, "a period"},
		{HeavyKeys{Above: 1, Period: 1, List: 7}, "does not exist"},
		{HeavyKeys{Above: 1, Period: 1, List: 0}, "entries of 4 bytes"},
	} {
		if err := tc.q.Check(p); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v; want an error with %q", tc.q, err, tc.want)
		}
	}
	if err := (HeavyKeys{Above: 1, Period: 1}).Check(&Plan{Lists: p.Lists}); err == nil {
		t.Error("heavy keys without counters are accepted")
	}
}

// TestAdditionsAreAddedUp: whatever is added, at whatever times, the additions of each key and
// redundancy that are written have its sum, and none waits longer than it may.
func TestAdditionsAreAddedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newAdditionCache(rapid.IntRange(1, 4).Draw(t, "rows"), 10)
		if err != nil {
			t.Fatal(err)
		}
		want, got := map[string]uint64{}, map[string]uint64{}
		name := func(r *dta.Report) string { return fmt.Sprint(string(r.Key), r.Redundancy) }
		waiting := map[string]model.Time{}
		write := func(r *dta.Report) { got[name(r)] += r.Delta; delete(waiting, name(r)) }
		now := model.Time(0)
		for range rapid.IntRange(0, 60).Draw(t, "reports") {
			r := increment(fmt.Sprint("key ", rapid.IntRange(0, 5).Draw(t, "key")), rapid.Uint64Range(0, 9).Draw(t, "delta"))
			r.Redundancy = uint8(rapid.IntRange(1, 2).Draw(t, "redundancy"))
			r.Immediate = rapid.IntRange(0, 9).Draw(t, "immediate") == 0
			want[name(&r)] += r.Delta
			if _, waits := waiting[name(&r)]; !waits && !r.Immediate {
				waiting[name(&r)] = now
			}
			c.add(now, &r, write)
			now += model.Time(rapid.IntRange(0, 5).Draw(t, "pause"))
			c.flushExpired(now, write)
			for k, since := range waiting {
				if now-since >= 10 {
					t.Fatalf("%s waits since %d at %d; want it to be written after 10", k, since, now)
				}
			}
		}
		c.flushAll(write)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("written %v; want %v", got, want)
		}
	})
}
