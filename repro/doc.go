// Package repro measures the claims of the papers behind Weft, with Weft's own
// implementation, and reports whether each claim holds here. A claim that does
// not hold stays in and is a FAIL.
//
// A new claim is a claim.Claim in its paper's folder and a line in that folder's
// list. Adding a paper is a line in Papers. Guide: docs/repro.md.
package repro
