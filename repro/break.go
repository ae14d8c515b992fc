package repro

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/repro/claim"
)

// Break is a claim that was measured without one of its mechanisms. Its JSON
// names are fixed.
type Break struct {
	ID string `json:"id"`
	claim.Mutation
	Measured string  `json:"measured"`
	Pass     bool    `json:"pass"`            // it should not
	Error    string  `json:"error,omitempty"` // why nothing was measured
	Seconds  float64 `json:"seconds"`
}

// Verdict returns FAIL, which is as it must be, or why it is not.
func (b *Break) Verdict() string {
	switch {
	case b.Error != "":
		return "not measured: " + b.Error
	case b.Pass:
		return "PASS, although the mechanism is removed"
	}
	return "FAIL"
}

// Caught reports whether the claim noticed that the mechanism is missing.
func (b *Break) Caught() bool { return b.Error == "" && !b.Pass }

// RunWithout measures a claim without one of its mechanisms.
func RunWithout(ctx context.Context, e Entry, m claim.Mutation, o claim.Options) Break {
	start := time.Now()
	r, err := e.Claim.RunWithout(ctx, m, o)
	b := Break{
		ID: e.ID, Mutation: m, Measured: r.Measured, Pass: r.Pass,
		Seconds: time.Since(start).Round(time.Millisecond).Seconds(),
	}
	if err != nil {
		b.Pass, b.Error = false, err.Error()
	}
	return b
}
