package dta

import "github.com/weft-telemetry/weft/repro/claim"

// What the claims depend on, and their laboratory can remove.
var (
	copies = claim.Mutation{
		Name: "copies", Removes: "a report is written once, whatever its redundancy",
	}
	indexes = claim.Mutation{
		Name: "indexes", Removes: "the log that DTA is compared with appends records and indexes nothing",
	}
	batches = claim.Mutation{
		Name: "batches", Removes: "every entry of a list is written by itself",
	}
	places = claim.Mutation{
		Name: "slots by hash", Removes: "a query searches the reports in their order in place of the slots that its key has",
	}
	rows = claim.Mutation{
		Name: "cache rows", Removes: "the translator's cache has a single row",
	}
	gathering = claim.Mutation{
		Name: "gathering", Removes: "every postcard is a path of one hop, and is written by itself",
	}
	networkWide = claim.Mutation{
		Name: "network-wide sums", Removes: "the translator sums what each switch reports by itself",
	}
	addingUp = claim.Mutation{
		Name: "adding up", Removes: "every Key-Increment is written by itself",
	}
	lockFree = claim.Mutation{
		Name: "lock-free lists", Removes: "the reader of a list holds a lock that its writer waits for",
	}
)

// written returns how many copies of a report are written.
func written(o claim.Options, n int) int {
	if o.Without(copies) {
		return 1
	}
	return n
}

// batchOf returns how many entries are written together.
func batchOf(o claim.Options, n int) int {
	if o.Without(batches) {
		return 1
	}
	return n
}
