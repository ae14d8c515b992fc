package slowslot_test

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/slowslot"
)

// covered counts what the random slots have shown, so that the test can tell that it
// compared something.
type covered map[string]int

func (c covered) count(r *slowslot.Result) {
	for i := range r.Findings {
		c[r.Findings[i].Kind.String()]++
		if !r.Findings[i].Confirmed {
			c["suspected"]++
		}
	}
	for i := range r.Losses {
		c["loss"]++
		if r.Losses[i].WholePath {
			c["loss over the whole path"]++
		}
		if !r.Losses[i].Final {
			c["early loss"]++
		}
	}
	for i := range r.Flows {
		if len(r.Flows[i].Loop) > 0 {
			c["path with a loop"]++
		}
	}
	for i := range r.Links {
		c["link, "+r.Links[i].Pattern.String()]++
	}
	for i := range r.Imbalances {
		c["imbalance by "+r.Imbalances[i].Cause.String()]++
	}
	c["microburst"] += len(r.Spikes)
	c["periodic sender"] += len(r.Rhythms)
	if r.Stats.Restarted > 0 {
		c["restarted accounts"]++
	}
	if r.Stats.Late > 0 {
		c["losses taken back"]++
	}
	if r.Untracked > 0 && r.Stats.Untracked > 0 {
		c["limits reached"]++
	}
}

func (c covered) check(t *testing.T) {
	for _, name := range []string{
		"loop", "black hole", "silent link", "wrong route", "suspected", "loss", "loss over the whole path", "early loss",
		"path with a loop", "link, none", "link, scattered", "link, selective", "imbalance by hash", "imbalance by burst", "microburst", "periodic sender", "limits reached",
		"restarted accounts", "losses taken back",
	} {
		if c[name] == 0 {
			t.Errorf("no %s in all slots: the comparison does not cover it", name)
		}
	}
}
