// Package live runs the simulator as the input of a controller: the controller
// sees reports only, through DTA and collector memory, as it does in a real
// fabric. Start runs a scenario file under the API. Demo runs a fabric with
// endless traffic, into which a Director injects faults; only the Director knows
// them, and it compares them with the incidents that the controller finds.
package live
