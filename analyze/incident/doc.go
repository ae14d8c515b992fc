// Package incident correlates what different sources find about the same fault:
// evidence of one time, location and set of flows becomes one incident with a
// timeline, a cause, a location, and a list of the sources that have not shown
// it yet. It detects nothing itself; the other analyses do, and a controller
// requests what is missing. The causes are analyze/anomaly's.
// Manual: docs/incidents.md.
package incident
