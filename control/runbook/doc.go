// Package runbook has the commands that an operator runs on a switch for each cause of
// an incident, by vendor, with the names of the incident filled in. The table is data:
// a cause is a list of steps. What an incident says about its place is the caller's.
package runbook
