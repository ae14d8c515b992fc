// Package capture records received reports in pcapng files for Wireshark and other
// tools, and replays such files, or captures of tcpdump: to a reader, or to the
// sockets of another process at the speed of the recording. It does not interpret
// reports.
// Manual: docs/replay.md.
package capture

import "strings"

// Kind is the kind of socket that received a report, or would have.
type Kind uint8

// The kinds.
const (
	Other  Kind = iota // not a report
	DTA                // Direct Telemetry Access, over UDP
	INT                // INT telemetry reports, over UDP
	ERSPAN             // mirrored packets, in GRE
	SPAN               // mirrored packets of one switch without encapsulation; files only
	NumKinds
)

var kindNames = [NumKinds]string{"other", "dta", "int", "erspan", "span"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// A recording has an interface for each kind, whose name identifies it: the ports
// are arbitrary.
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

// deviceKind parses a name of deviceName; for other names it returns Other.
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
