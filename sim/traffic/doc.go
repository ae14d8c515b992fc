// Package traffic makes workloads: deterministic lists of flows for the
// simulator. Generators draw them (Poisson arrivals from measured flow sizes,
// permutations, incasts, queries, persistent flows, shrew bursts, collectives),
// the HPCC simulator's flow files contain them, Generate merges them into one
// list. Transport is sim's work. docs/traffic.md describes every generator for
// users.
package traffic
