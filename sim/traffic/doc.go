// Package traffic makes workloads: deterministic lists of flows for the
// simulator to play. Generators draw them (Poisson arrivals from measured flow
// sizes, permutations, incasts, queries, persistent flows, shrew bursts,
// collectives), files bring them from the HPCC simulator, Generate merges them
// into one list. How a flow is carried is sim's work. docs/traffic.md
// describes every generator for users.
package traffic
