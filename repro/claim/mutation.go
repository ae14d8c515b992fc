package claim

import "context"

// Mutation is a mechanism that a claim depends on and that its laboratory can
// remove. A claim that passes without the mechanism says nothing about it, so
// every claim must fail under each of its mutations. Hooks are in laboratories
// alone: nothing outside repro knows of mutations.
type Mutation struct {
	Name    string `json:"mutation"` // in lower case, unique within a claim
	Removes string `json:"removes"`  // one sentence: what is missing then
}

// Without reports whether the laboratory must work without the mechanism of m.
func (o Options) Without(m Mutation) bool { return o.removed != "" && o.removed == m.Name }

// Broken reports whether any mechanism is removed. A laboratory may then stop at
// the first evidence against the claim.
func (o Options) Broken() bool { return o.removed != "" }

// RunWithout measures the claim without the mechanism of one of its mutations.
// It should fail.
func (c *Claim) RunWithout(ctx context.Context, m Mutation, o Options) (Result, error) {
	o.removed = m.Name
	return c.Run(ctx, o)
}
