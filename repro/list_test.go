package repro

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/repro/claim"
)

// TestClaimsAreWellFormed checks what the command line and readers rely on.
func TestClaimsAreWellFormed(t *testing.T) {
	seen := map[string]bool{"all": true, "list": true}
	id := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
	for _, p := range Papers() {
		if seen[p.Name] {
			t.Errorf("paper %q is there twice", p.Name)
		}
		seen[p.Name] = true
		for _, c := range p.Claims {
			if !id.MatchString(c.ID) || !strings.HasPrefix(c.ID, p.Name+"-") || seen[c.ID] {
				t.Errorf("claim %q of %s: want a unique ID in lower case that starts with %s-", c.ID, p.Name, p.Name)
			}
			seen[c.ID] = true
			if c.Where == "" || c.Says == "" || c.Published == "" || c.Run == nil {
				t.Errorf("claim %s lacks where, says, published or a function: %+v", c.ID, c)
			}
			names := map[string]bool{}
			for _, m := range c.Mutations {
				if m.Name == "" || m.Removes == "" || names[m.Name] {
					t.Errorf("claim %s: mutation %+v, want a name of its own and what it removes", c.ID, m)
				}
				names[m.Name] = true
			}
		}
	}
}

func TestSelect(t *testing.T) {
	papers := []Paper{
		{Name: "a", Claims: []claim.Claim{{ID: "a-one"}, {ID: "a-two"}}},
		{Name: "b", Claims: []claim.Claim{{ID: "b-one"}}},
	}
	for name, tc := range map[string]struct {
		ask  []string
		want []string
		err  string
	}{
		"a claim":        {ask: []string{"a-two"}, want: []string{"a-two"}},
		"a paper":        {ask: []string{"a"}, want: []string{"a-one", "a-two"}},
		"all":            {ask: []string{"all"}, want: []string{"a-one", "a-two", "b-one"}},
		"in list order":  {ask: []string{"b-one", "a-two", "b"}, want: []string{"a-two", "b-one"}},
		"one is unknown": {ask: []string{"a", "a-three"}, err: `claim "a-three", want all, a paper (a, b), or a claim that weft repro list shows`},
	} {
		got, err := Select(papers, tc.ask...)
		var ids []string
		for _, e := range got {
			ids = append(ids, e.ID)
		}
		if diff := cmp.Diff(tc.want, ids); diff != "" || tc.err == "" != (err == nil) || err != nil && err.Error() != tc.err {
			t.Errorf("%s: Select(%q) = %q, %v; want %q, %q", name, tc.ask, ids, err, tc.want, tc.err)
		}
	}
}
