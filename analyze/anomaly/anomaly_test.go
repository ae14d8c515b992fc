package anomaly

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// entries returns the common part of every row of the table, by section.
func entries() map[string][]Row {
	all := map[string][]Row{}
	for i := range details {
		all["detail"] = append(all["detail"], details[i].Row)
	}
	for i := range types {
		all["anomaly"] = append(all["anomaly"], types[i].Row)
	}
	for i := range roots {
		all["root cause"] = append(all["root cause"], roots[i].Row)
	}
	for i := range causes {
		all["cause"] = append(all["cause"], causes[i].Row)
	}
	return all
}

// TestRowsAreComplete: every row has a name, a title and a heading in a manual
// whose section holds name and title.
func TestRowsAreComplete(t *testing.T) {
	for section, rows := range entries() {
		names := map[string]bool{}
		for i, r := range rows {
			if r.Name == "" || r.Title == "" {
				t.Errorf("%s %d: %+v; want a name and a title", section, i, r)
			}
			if names[r.Name] {
				t.Errorf("%s %q is there twice", section, r.Name)
			}
			names[r.Name] = true
			if text := manual(t, r.Doc); !strings.Contains(text, "`"+r.Name+"`") || !strings.Contains(text, r.Title) {
				t.Errorf("%s does not mention %s `%s`, %q", r.Doc, section, r.Name, r.Title)
			}
		}
	}
	for i := range types {
		if types[i].sentence == "" {
			t.Errorf("anomaly %v has no sentence", Type(i))
		}
	}
	for i := range roots {
		if c := RootCause(i); c != NoRootCause && c.Trigger() == "" {
			t.Errorf("root cause %v has no trigger clause", c)
		}
	}
	for i := range details {
		if details[i].Remedy == "" {
			t.Errorf("detail %v has no remedy", Detail(i))
		}
	}
	for i := range causes {
		if c := Cause(i); c.Remedy() == "" || c.Headline() == "" || len(c.Sources()) == 0 {
			t.Errorf("cause %v: remedy %q, headline %q, sources %v; want all", c, c.Remedy(), c.Headline(), c.Sources())
		}
	}
}

// manual returns the section under a heading of a manual, named as file#anchor.
func manual(t *testing.T, ref string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(ref, "#")
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(b), "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		if strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor {
			return text
		}
	}
	t.Errorf("%s has no heading %q", file, anchor)
	return ""
}

// TestPlaceholdersAreKnown: a text has only placeholders that table.go lists.
func TestPlaceholdersAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, name := range []string{
		"victim", "port", "switch", "host", "culprits", "detail", "evidence", "ports", "observed", "trigger", "fault",
		"location", "senders", "congest",
	} {
		known["{"+name+"}"] = true
	}
	texts := []string{}
	for _, rows := range entries() {
		for _, r := range rows {
			texts = append(texts, r.Remedy)
		}
	}
	for i := range types {
		texts = append(texts, types[i].sentence)
	}
	for i := range roots {
		texts = append(texts, roots[i].trigger)
	}
	for i := range causes {
		texts = append(texts, causes[i].headline)
	}
	for _, text := range texts {
		for _, name := range regexp.MustCompile(`\{[^}]*\}`).FindAllString(text, -1) {
			if !known[name] {
				t.Errorf("%q has the unknown placeholder %s", text, name)
			}
		}
	}
}

// relatedByFamily is the rule that the lists of Explains write out: causes of one
// family are related; wrong routes lose packets and fill queues; paused queues
// look like dead links; a detour, or PFC that spreads, makes other ports carry
// more.
func relatedByFamily(a, b Cause) bool {
	fa, fb := a.Family(), b.Family()
	if fa == fb {
		return true
	}
	if fa > fb {
		a, b, fa, fb = b, a, fb, fa
	}
	switch {
	case fa == LoadSharing:
		return b >= Incast && fb != PacketLoss
	case fb == Forwarding:
		return true
	case fa == Pausing && fb == PacketLoss:
		return b == DeadLink || a == Deadlock && b == Loss
	default:
		return false
	}
}

func TestRelatedCauses(t *testing.T) {
	for a := range NumCauses {
		for b := range NumCauses {
			if got, want := a.Related(b), relatedByFamily(a, b); got != want {
				t.Errorf("%v.Related(%v) = %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestCausesOfVerdicts(t *testing.T) {
	for _, tc := range []struct {
		anomaly Type
		detail  Detail
		want    Cause
	}{
		{FlowContention, MicroBurst, Contention},
		{PFCBackpressure, UnknownDetail, Incast},
		{PFCStorm, NICStorm, Storm},
		{PFCStorm, DrainsSlowly, SlowReceiver},
		{DeadlockInLoop, MicroBurst, Deadlock},
		{DeadlockOutOfLoop, DrainsSlowly, Deadlock},
	} {
		if got := tc.anomaly.Cause(tc.detail); got != tc.want {
			t.Errorf("%v by %v is evidence of %v, want %v", tc.anomaly, tc.detail, got, tc.want)
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for i := range types {
		var got Type
		if err := got.UnmarshalText([]byte(types[i].Name)); err != nil || got != Type(i) {
			t.Errorf("%q read back as %v, %v", types[i].Name, got, err)
		}
	}
	var d Detail
	err := d.UnmarshalText([]byte("flood"))
	want := `diagnose: detail "flood", want one of unknown, micro-burst, periodic-burst, ecmp-imbalance, priority, slow-receiver, nic-storm`
	if err == nil || err.Error() != want {
		t.Errorf("flood: %v, want %s", err, want)
	}
}
