package attribution

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the accounts of the drawn timelines")

// TestDrawnTimelines reads testdata/*.txt: a drawing, what a person expects of
// it, and the account. -update rewrites the account alone.
func TestDrawnTimelines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d drawings, %v; want at least 25", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			drawing, want, _ := strings.Cut(string(text), "-- account --\n")
			d, err := parseDrawing(drawing)
			if err != nil {
				t.Fatal(err)
			}
			a := Attribute(&d.evidence, &d.victim)
			got := d.print(a)
			d.checkExpectations(t, a)
			if *update {
				if err := os.WriteFile(file, []byte(drawing+"-- account --\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("account\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// print returns the account as the files have it.
func (d *drawing) print(a *Account) string {
	var b strings.Builder
	columns := func(t time.Duration) string {
		return strconv.FormatFloat(math.Round(100*float64(t)/float64(d.column))/100, 'f', -1, 64)
	}
	fmt.Fprintf(&b, "late %s, confidence %.2f\n", columns(a.Late), a.Confidence())
	for i := range a.Terms {
		t := &a.Terms[i]
		fmt.Fprintf(&b, "%7s %v", columns(t.Time), t.Kind)
		if t.Place != nil {
			fmt.Fprintf(&b, " %s", d.Link(t.Place.Port))
		}
		if t.Kind == Unexplained {
			fmt.Fprintf(&b, " (%v)", t.Reason)
		}
		fmt.Fprintf(&b, " %s..%s", columns(t.Min), columns(t.Max))
		if t.Queued > 0 && t.Kind == Contention {
			fmt.Fprintf(&b, ", queued %s", columns(t.Queued))
		}
		for _, v := range t.Via {
			fmt.Fprintf(&b, ", via %s %s", d.Link(v.Port), columns(v.Time))
		}
		for _, c := range t.Culprits {
			fmt.Fprintf(&b, ", %s %.0f %%", d.Flow(c.Flow), 100*c.Share)
		}
		b.WriteByte('\n')
	}
	for i := range a.Deadlocks {
		b.WriteString(d.printDeadlock(&a.Deadlocks[i]) + "\n")
	}
	b.WriteString(a.Sentence(d) + ".\n")
	line := a.Timeline(&d.evidence, &d.victim)
	b.WriteString(line.Draw(d, int(line.To.Sub(line.From)/d.column)))
	return b.String()
}

func (d *drawing) printDeadlock(c *DeadlockCycle) string {
	words := []string{"deadlock"}
	for _, p := range c.Cycle {
		words = append(words, d.Link(p.Port))
	}
	if c.Persistent {
		words = append(words, "persistent")
	}
	switch {
	case c.Trigger == nil:
		words = append(words, "trigger unknown")
	case c.Inside:
		words = append(words, "trigger inside", c.TriggerKind.String(), d.Link(c.Trigger.Port))
	default:
		words = append(words, "trigger outside", c.TriggerKind.String(), d.Link(c.Trigger.Port))
	}
	return strings.Join(words, " ")
}

// checkExpectations compares what a person expects, to half a column: lines
// "expect contention tor0>h1 12", "expect unexplained 3", "expect deadlock …" as
// printDeadlock has it. Terms of causes that are not expected must be shorter
// than half a column.
func (d *drawing) checkExpectations(t *testing.T, a *Account) {
	t.Helper()
	got, want := map[string]float64{}, map[string]float64{}
	for i := range a.Terms {
		term := &a.Terms[i]
		key := term.Kind.String()
		if term.Kind != Unexplained && term.Kind != Deadlock {
			key += " " + d.Link(term.Place.Port)
		}
		got[key] += float64(term.Time) / float64(d.column)
	}
	for _, words := range d.expected {
		if words[0] == "deadlock" && len(words) > 2 {
			text := strings.Join(words, " ")
			if !slices.ContainsFunc(a.Deadlocks, func(c DeadlockCycle) bool { return d.printDeadlock(&c) == text }) {
				t.Errorf("no %q", text)
			}
			continue
		}
		want[strings.Join(words[:len(words)-1], " ")] = number(words[len(words)-1])
	}
	if len(want) == 0 && len(got) > 0 && a.Late > 0 {
		t.Error("the drawing expects nothing")
	}
	for _, key := range slices.SortedFunc(func(yield func(string) bool) {
		for k := range got {
			if _, ok := want[k]; !ok && !yield(k) {
				return
			}
		}
		for k := range want {
			if !yield(k) {
				return
			}
		}
	}, cmp.Compare[string]) {
		if math.Abs(got[key]-want[key]) > 0.5 {
			t.Errorf("%s: %.2f columns, want %.2f", key, got[key], want[key])
		}
	}
}
