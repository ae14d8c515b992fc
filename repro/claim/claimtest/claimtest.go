// Package claimtest tests that claims fail when what they claim is gone.
package claimtest

import (
	"testing"

	"github.com/weft-telemetry/weft/repro/claim"
)

// MutationsFail runs the quick form of every claim without each mechanism that
// the claim names, and wants it to fail.
func MutationsFail(t *testing.T, claims []claim.Claim) {
	for i := range claims {
		c := &claims[i]
		if len(c.Mutations) == 0 {
			t.Errorf("%s has no mutation; want at least one mechanism without which it fails", c.ID)
		}
		for _, m := range c.Mutations {
			t.Run(c.ID+"/"+m.Name, func(t *testing.T) {
				r, err := c.RunWithout(t.Context(), m, claim.Options{Seed: 1, Quick: true})
				if err != nil {
					t.Fatal(err)
				}
				if r.Pass {
					t.Errorf("%s passes although %s: measured %s, published %s; want FAIL", c.ID, m.Removes, r.Measured, c.Published)
				}
			})
		}
	}
}
