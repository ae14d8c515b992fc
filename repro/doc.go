// Package repro measures what the papers behind Weft claim, with Weft's own
// parts, and says of each claim whether it holds here. A claim that does not
// hold stays in and says FAIL.
//
// A new claim is a claim.Claim in its paper's folder and a line in that folder's
// list. Adding a paper is a line in Papers. Guide: docs/repro.md.
package repro
