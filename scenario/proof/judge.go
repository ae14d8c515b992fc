package proof

import (
	"fmt"
	"time"
)

// judge compares the trials.
func (r *Result) judge() {
	late := func(p *Trial) string {
		return fmt.Sprintf("%.2f times ideal", p.Slowdown)
	}
	switch {
	case r.Error > tolerance:
		r.Verdict = NotShown
		r.Text = fmt.Sprintf("the rebuilt run delays the packet by %v, not by %v: nothing is proven",
			time.Duration(r.Rebuilt.LateNs).Round(10*time.Nanosecond), time.Duration(r.LateNs).Round(10*time.Nanosecond))
		return
	case r.restored(&r.Without):
		r.Verdict = Proven
	case r.fall(&r.Without) >= half*r.Share:
		r.Verdict = Partly
	default:
		r.Verdict = Refuted
	}
	r.Text = fmt.Sprintf("the packet takes %s, and %s %s", late(&r.Rebuilt), late(&r.Without), r.Without.What)
	if r.Together != nil {
		r.Text += fmt.Sprintf("; %s %s", late(r.Together), r.Together.What)
	}
	if r.Control != nil {
		r.Text += fmt.Sprintf("; %s %s", late(r.Control), r.Control.What)
		if r.Verdict == Proven && r.restored(r.Control) {
			// Another removal does the same: the experiment does not distinguish them.
			r.Verdict = Partly
		}
	}
}

// fall returns by how much less a packet is late, as a share.
func (r *Result) fall(p *Trial) float64 {
	return 1 - float64(p.LateNs)/float64(max(r.Rebuilt.LateNs, 1))
}

// restored reports whether a removal takes what the account attributes to the cause.
func (r *Result) restored(p *Trial) bool {
	return p.Slowdown <= inTime || r.Share < Whole && r.fall(p) >= enough*r.Share
}

// Trials lists all runs.
func (r *Result) Trials() []Trial {
	list := []Trial{r.Rebuilt, r.Without}
	if r.Control != nil {
		list = append(list, *r.Control)
	}
	if r.Together != nil {
		list = append(list, *r.Together)
	}
	return append(list, r.Remedies...)
}

// Files returns the scenarios of all runs by the names of their files.
func (r *Result) Files() map[string]string {
	files := map[string]string{}
	for _, t := range r.Trials() {
		files[t.Name+".yaml"] = t.Scenario
	}
	return files
}
