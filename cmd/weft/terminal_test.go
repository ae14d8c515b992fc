package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// TestScreenFits cuts lines to a width, counts characters and not bytes, and leaves a
// file's lines as they are.
func TestScreenFits(t *testing.T) {
	for _, tc := range []struct {
		width      int
		line, want string
	}{
		{0, strings.Repeat("x", 300), strings.Repeat("x", 300)},
		{10, "0123456789", "0123456789"},
		{10, "01234567890", "012345678…"},
		{5, "→→→→→→", "→→→→…"},
		{6, "abc   def", "abc…"},
		{1, "ab", "…"},
	} {
		if got := (screen{width: tc.width}).fit(tc.line); got != tc.want {
			t.Errorf("fit(%q) in %d columns = %q, want %q", tc.line, tc.width, got, tc.want)
		}
	}
}

// TestTableFitsTheScreen: the widest columns are narrowed first, so that every column is
// there; a file gets them whole.
func TestTableFitsTheScreen(t *testing.T) {
	var rows table
	rows.row("ID", "PATH", "SUMMARY", "LOST")
	rows.row("i1", "leaf0 > spine1 > leaf3", "31 flows lost packets after leaf0", 7)
	for width, want := range map[int]string{
		0:  "ID  PATH                    SUMMARY                            LOST\ni1  leaf0 > spine1 > leaf3  31 flows lost packets after leaf0  7\n",
		44: "ID  PATH             SUMMARY           LOST\ni1  leaf0 > spine1…  31 flows lost p…  7\n",
		20: "ID  PATH      SUMMA…\ni1  leaf0 >…  31 fl…\n",
	} {
		var b strings.Builder
		if err := rows.printOn(&b, screen{width: width}, func(string) string { return "" }); err != nil || b.String() != want {
			t.Errorf("in %d columns:\n%s%v, want\n%s", width, b.String(), err, want)
		}
	}
}

func TestSeverityIsPainted(t *testing.T) {
	line := "i1 open critical loop"
	if got := (screen{}).paint(line, "critical"); got != line {
		t.Errorf("without colour: %q", got)
	}
	if got, want := (screen{colour: true}).paint(line, "critical"), "i1 open \x1b[1;31mcritical\x1b[0m loop"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFollowerPrintsChanges shows a notice, an incident that opens, repeats itself, is
// found to be worse and closes, and one of another cause than asked for.
func TestFollowerPrintsChanges(t *testing.T) {
	var out strings.Builder
	f := follower{
		flags: &incidentsFlags{}, out: &out, shown: map[string]api.Incident{},
		clock: func(in *api.Incident) string { return in.Begin.Format("15:04:05") },
	}
	f.flags.query.Cause = "storm"
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, in := range []api.Incident{
		{ID: "i1", Severity: "notice", State: "open", Cause: "storm"},
		{ID: "i2", Severity: "warning", State: "open", Cause: "storm", Location: "h4", Summary: "first"},
		{ID: "i2", Severity: "warning", State: "open", Cause: "storm", Location: "h4", Summary: "again"},
		{ID: "i2", Severity: "critical", State: "open", Cause: "storm", Location: "h4", Summary: "worse"},
		{ID: "i3", Severity: "critical", State: "open", Cause: "loop", Location: "leaf1"},
		{ID: "i2", Severity: "critical", State: "closed", Cause: "storm", Location: "h4", Summary: "over"},
		{ID: "i4", Severity: "warning", State: "open", Cause: "storm", Location: "h5", Summary: "another"},
		{ID: "i4", Severity: "warning", State: "closed", Cause: "storm", Location: "h5", Summary: "another", MergedInto: "i2"},
	} {
		in.Begin = at
		if err := f.print(&in); err != nil {
			t.Fatal(err)
		}
	}
	want := `03:04:05  i2     warning  open   storm         h4  first
03:04:05  i2     critical open   storm         h4  worse
03:04:05  i2     critical closed storm         h4  over
03:04:05  i4     warning  open   storm         h5  another
03:04:05  i4     warning  in i2  storm         h5  another
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

// TestMergedIncidentsAreNested: open incidents come first, and merged ones below what
// they are part of, if that is in the list.
func TestMergedIncidentsAreNested(t *testing.T) {
	page := []api.Incident{
		{ID: "i7", State: "closed", MergedInto: "i6"},
		{ID: "i6", State: "closed", MergedInto: "i2"},
		{ID: "i5", State: "closed"},
		{ID: "i4", State: "open"},
		{ID: "i3", State: "closed", MergedInto: "i0"},
		{ID: "i2", State: "open"},
	}
	var ids []string
	for _, in := range nested(page) {
		ids = append(ids, in.ID)
	}
	if got, want := strings.Join(ids, " "), "i4 i2 i6 i7 i5 i3"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestTimeOfDay(t *testing.T) {
	for text, want := range map[string]string{"2026-11-17T19:52:51.420000Z": "19:52:51.420", "12.5ms": "12.5ms"} {
		if got := timeOfDay(text); got != want {
			t.Errorf("timeOfDay(%s) = %s, want %s", text, got, want)
		}
	}
}
