// Package engine keeps the time of a simulation: picoseconds, and a queue of
// the events to come, ordered by time and then by the order they were pushed.
// What an event means, and the loop that runs them, belong to package sim.
//
// # How the queue works
//
// A simulator asks its queue for the next event some ten million times a
// second, so the queue is built for it. Time is cut into buckets, as in a
// calendar; buckets hang on a ladder of rungs, coarse to fine, where one
// rung's buckets together span a single bucket of the rung above:
//
//	rung 1   60 ┆ 8 buckets of 2^60 ps (13 days)
//	rung 2   48 ┆ ├─┼─┼─┼ … 4096 of 2^48 ps (281 s) in the current one above
//	rung 3   36 ┆   ├─┼─┼ … 4096 of 69 ms
//	rung 4   24 ┆     ├─┼ … 4096 of 17 µs
//	rung 5  fitted        ├┼┼ … 8 to 32768, as fine as the events ask for
//	rung 6… fitted          … where a bucket of rung 5 holds too many
//	near     sorted             the current bucket's events
//
// Push appends an event to the one bucket its time belongs to: the highest bit
// in which the time differs from the current bucket's start names the rung, the
// bits below it the bucket. When near is empty, the next bucket that holds
// anything, found in two bit maps, replaces it: up to sortMax events are sorted
// into near; more are spread over a new, finer rung first. Far timers are so
// moved once per rung, near events mostly never, and idle time costs nothing.
//
// The width of buckets follows the events: a new rung below 17 µs takes the
// width at which, at the rate of pops since the last such rung, a bucket would
// hold about ten events, or a finer one if the bucket that it divides holds
// that many already. A guess that proves too coarse costs one more rung; near
// itself is divided when insertions into it have to pass many events. There is
// nothing to tune and nothing to rebuild.
//
// Why events of equal time leave in the order they came: at any moment a time
// belongs to exactly one bucket, or to near; a bucket is a list in order of
// arrival; it is emptied in that order, into buckets that hold nothing of its
// span yet; and sorting keeps equal times in order. No sequence number is
// stored.
//
// # What it costs
//
// One Pop and one Push of a 24-byte event, with as many pending, in
// nanoseconds; behind the stroke, a hand-written heap of four children to a
// node. container/heap takes 200 to 900. BenchmarkHold says what the mixes are.
//
//	pending       100      1,000     10,000    100,000   1,000,000
//	fabric     26 |  70  23 | 110  27 | 164  19 | 173   26 | 554
//	uniform    23 |  79  24 | 120  27 | 160  44 | 232   85 | 532
//	timers     14 |  45  19 |  60  25 | 103  19 | 203   30 | 616
//	burst      21 | 106  12 | 145  13 | 191  15 | 268   26 | 491
//	sparse     44 |  78  23 | 111  30 | 148  35 | 227   85 | 505
//
//	go test -run - -bench Hold -benchtime 20000x -count 25 -cpu 1 ./sim/engine
//
// These are the best of the repeated runs, on a busy virtual machine with two
// processors; as processor time over a million operations, a busy fabric takes
// 28, 24, 28, 37 and 36 ns.
//
// Also tried, with a fabric of 10, 10,000 and a million events, where this
// queue takes 17, 25 and 30 ns: the same ladder with a fixed finest width of
// 4 ns, 38, 40 and 57 ns; events in a pool and only keys in the buckets, which
// moves less memory but finds none of it in order, 36, 38 and 60 to 80 ns.
package engine
