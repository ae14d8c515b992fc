// Package sampled estimates flows from packet samples, such as those of sFlow: how
// many packets and bytes each had in a window, and which switches it passed.
//
// One sample of a switch that samples one of N packets stands for N. A flow's
// packets pass one switch of every stage of its route: the switches that the routes
// allow at one distance from the destination. The sum of the samples of a stage,
// each times N, is an unbiased estimate of the flow, whichever switches
// load balancing chose; the mean over the stages uses all samples, and has a relative
// standard error of about 1/√n with n of them. A stage with a switch that does not
// sample does not count: packets through it would be missing.
//
// Manual: docs/sources.md.
package sampled
