// Package slowslot compares the analyses of flows with slow and obvious ones, which are
// its subpackages: results are equal on random slots.
package slowslot
