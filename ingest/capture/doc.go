// Package capture records the reports that sockets take, in pcapng files that
// Wireshark and its kin read, and plays such files, or captures that tcpdump
// made, back: to a reader, or to the sockets of another process at the pace of
// the recording. What reports mean is left to others.
// Manual: docs/replay.md.
package capture

import "strings"

// Kind is the socket that a report came in by, or would have.
type Kind uint8

// The kinds.
const (
	Other  Kind = iota // nothing that Weft takes
	DTA                // Direct Telemetry Access, over UDP
	INT                // INT telemetry reports, over UDP
	ERSPAN             // mirrored packets, in GRE
	SPAN               // mirrored packets as they were, of one switch; no socket takes them
	NumKinds
)

var kindNames = [NumKinds]string{"other", "dta", "int", "erspan", "span"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// A recording has an interface for each kind, whose name tells it: ports may be
// any.
const (
	devicePrefix   = "weft-"
	rejectedSuffix = "-rejected"
)

func deviceName(k Kind, rejected bool) string {
	name := devicePrefix + k.String()
	if rejected {
		name += rejectedSuffix
	}
	return name
}

// deviceKind reads what deviceName made; Other: it did not.
func deviceKind(name string) (k Kind, rejected bool) {
	name, ours := strings.CutPrefix(name, devicePrefix)
	if !ours {
		return Other, false
	}
	name, rejected = strings.CutSuffix(name, rejectedSuffix)
	for k := DTA; k < NumKinds; k++ {
		if name == k.String() {
			return k, rejected
		}
	}
	return Other, false
}
