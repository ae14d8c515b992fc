// Package member shares the partitions of a group among its members: each works on its
// share, takes that of members that have gone, and gives some to those that come. A
// group of one partition has a leader. Who holds what is in leases; what the work is, is
// the caller's.
package member
