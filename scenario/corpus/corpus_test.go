package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	truth := &Truth{Recordings: []Recording{
		{Name: "storm", Cause: "storm", Places: []string{"h1"}},
		{Name: "loop", Cause: "loop", Places: []string{"leaf0", "spine0"}},
		{Name: "loss", Cause: "loss", Places: []string{"leaf1:Ethernet0"}},
		{Name: "incast", Cause: "incast", Places: []string{"leaf2:Ethernet0"}},
		{Name: "blackhole", Cause: "blackhole", Places: []string{"leaf3"}},
		{Name: "quiet"},
		{Name: "calm"},
	}}
	s := Judge(truth, &Answers{Tool: "some", Answers: []Answer{
		{"storm", "storm", "h1"},
		{"loop", "loop", "spine0"},
		{"loop", "loop", "leaf0"}, // an operator gets two alerts
		{"loss", "blackhole", "leaf1:Ethernet0"},
		{"incast", "incast", "leaf2:Ethernet4"},
		{"calm", "storm", "h1"},
	}})
	want := map[string]string{
		"storm": "right", "loop": "right", "loss": "place only", "incast": "cause only", "blackhole": "missed", "quiet": "right", "calm": "invented",
	}
	got := map[string]string{}
	for _, r := range s.Recordings {
		got[r.Name] = r.Verdict
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if s.Incidents != 5 || s.Right != 2 || s.Place != 3 || s.Wrong != 4 || s.Precision != 2./6 || s.Recall != 2./5 || s.Perfect() {
		t.Errorf("score %+v; want 2 of 5 right, 3 at the place, 4 of 6 answers wrong", s)
	}
	if s := Judge(&Truth{Recordings: truth.Recordings[:1]}, &Answers{Answers: []Answer{{"storm", "storm", "h1"}}}); !s.Perfect() {
		t.Errorf("score %+v of the truth itself; want it perfect", s)
	}
}

func TestMalformedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "file.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, want := range map[string]string{
		`{"recordings": [{"name": "a/b"}]}`:                                 "without slashes",
		`{"recordings": [{"name": "a"}, {"name": "a"}]}`:                    "recording 2",
		`{"recordings": [{"name": "a", "cause": "bad", "places": ["h1"]}]}`: `cause "bad", want one of`,
		`{"recordings": [{"name": "a", "cause": "storm"}]}`:                 "want a cause and places",
		`{"recordings": [{"name": "a", "caus": "storm"}]}`:                  "caus",
		`[`: "file.json",
	} {
		if _, err := ReadTruth(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadTruth(%s): %v; want an error with %q", text, err, want)
		}
	}
	truth := &Truth{Recordings: []Recording{{Name: "a", Cause: "storm", Places: []string{"h1"}}}}
	for text, want := range map[string]string{
		`{"answers": [{"recording": "b", "cause": "storm", "place": "h1"}]}`: `recording "b"`,
		`{"answers": [{"recording": "a", "cause": "rain", "place": "h1"}]}`:  `cause "rain"`,
	} {
		if _, err := ReadAnswers(write(text), truth); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadAnswers(%s): %v; want an error with %q", text, err, want)
		}
	}
}

// FuzzReadTruth: no file crashes it, and what it accepts can be judged.
func FuzzReadTruth(f *testing.F) {
	data, err := os.ReadFile("../../examples/incidents/truth.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"recordings": [{"name": "a"}]}`))
	path := filepath.Join(f.TempDir(), "truth.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		truth, err := ReadTruth(path)
		if err != nil {
			return
		}
		if s := Judge(truth, &Answers{}); s.Right != 0 || s.Wrong != 0 || s.Incidents > len(truth.Recordings) {
			t.Errorf("score %+v without answers", s)
		}
	})
}
