package translate

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Gate decides who may report. An Intake asks it before it reads or changes
// anything of a reporter. Several Intakes may share a Gate and call it at once.
// Without a Gate everything is admitted and nothing can be authenticated.
type Gate interface {
	// Datagram decides about a datagram of version 1 or 2 by its source, header
	// and size. It comes before the MAC: the header may be forged.
	Datagram(now model.Time, from netip.AddrPort, h *dta.Header, size int) Refusal
	// Prototype decides about a datagram of the prototype's format, which names
	// no reporter and has no MAC.
	Prototype(now model.Time, from netip.AddrPort, size int) Refusal
	// Report decides about one report of an admitted datagram: an Append by its list
	// and data, others by their key. Both alias the datagram.
	Report(now model.Time, h *dta.Header, r *dta.Report) Refusal

	// Keys returns the keys of a reporter, none where it has none. A reporter with
	// keys must use them. The caller does not change or keep the slice.
	Keys(reporter model.NodeID) []GateKey
	// Generation changes when keys may have changed.
	Generation() uint64
	// TimeWindow is how far the send time of an authenticated datagram may be from
	// now, in both directions.
	TimeWindow() time.Duration

	// Refused counts a refusal, those that the Intake decides included.
	// reports is 0 for a datagram without reports.
	Refused(from netip.AddrPort, why Refusal, reports int)
}

// GateKey is a key of a reporter.
type GateKey struct {
	ID     uint8
	Secret [32]byte
}

// Refusal is why a datagram or report is not admitted.
type Refusal uint8

// Refusals. They are not answered: an answer would serve only who probes.
const (
	Admitted            Refusal = iota
	UnknownReporter             // the topology has no such node
	AddressNotAllowed           // the source address is not one of the reporter
	SourceRateLimit             // the source sends more than its share
	NoMAC                       // version 1 of a reporter that must authenticate
	WrongMAC                    // altered, or made without the key
	UnknownKey                  // the reporter has no key of this id
	Replayed                    // of an earlier start of the reporter
	OutsideTimeWindow           // sent too long ago, or in the future
	AnotherAddress              // the reporter reports from another address at present
	ForeignList                 // the list is not the reporter's
	ForeignSwitch               // the payload names another switch than the reporter
	UnknownPlace                // the payload names a switch or port that the topology has not
	PrototypeNotAllowed         // the prototype's format cannot be authenticated
	MalformedKey                // key or value of no format that this collector has memory for
	ForeignHost                 // the payload names a host that is not attached to the reporter

	Refusals = int(iota) // number of values, Admitted included
)

// String prints the reason.
func (r Refusal) String() string {
	switch r {
	case Admitted:
		return "admitted"
	case UnknownReporter:
		return "unknown reporter"
	case AddressNotAllowed:
		return "address not allowed"
	case SourceRateLimit:
		return "source rate limit"
	case NoMAC:
		return "no MAC"
	case WrongMAC:
		return "wrong MAC"
	case UnknownKey:
		return "unknown key"
	case Replayed:
		return "replayed"
	case OutsideTimeWindow:
		return "outside time window"
	case AnotherAddress:
		return "another address reports"
	case ForeignList:
		return "not this reporter's list"
	case ForeignSwitch:
		return "another switch in the payload"
	case UnknownPlace:
		return "unknown switch or port in the payload"
	case PrototypeNotAllowed:
		return "prototype format not allowed"
	case MalformedKey:
		return "malformed key"
	case ForeignHost:
		return "host of another switch in the payload"
	}
	return "refusal " + strconv.Itoa(int(r))
}
