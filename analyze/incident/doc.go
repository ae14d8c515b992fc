// Package incident joins what different sources say about the same trouble:
// evidence of one time, place and set of flows becomes one incident with a
// timeline, a cause, a place where it began, and a list of the sources that
// have not spoken yet. It finds nothing itself; the analyses beside it do, and
// a controller asks for what is missing. Manual: docs/incidents.md.
package incident
