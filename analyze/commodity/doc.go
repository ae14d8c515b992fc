// Package commodity concludes from what switches on sale export: port counters
// over an interval and samples of packets. It finds hosts that pause their
// switch (PFC storm, slow receiver), queues that flows congest (incast,
// contention), equal-cost ports that share unevenly, PFC deadlocks, drops by
// reason, and links that lose packets.
//
// The graph of who waits for whom is that of analyze/provenance, made of coarser
// parts: an upstream port waits for the queue that its packets go to, which is
// known by samples that carry ingress and egress port, and by watermarks. What
// one interval shows is one fact, however long it is: nothing is concluded about
// an order in time inside it, and the confidence of a verdict falls with the
// number of intervals that show it.
//
// Readings and samples come from any source (model/portstat); evidence goes to
// analyze/incident. Manual: docs/commodity.md.
package commodity
