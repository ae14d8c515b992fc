// Package capture records received reports in pcapng files for Wireshark and other
// tools, and replays such files, or captures of tcpdump: to a reader, or to the
// sockets of another process at the speed of the recording. It does not interpret
// reports.
// Manual: docs/replay.md.
package capture

import (
	"strings"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
)

// A recording has an interface for each kind, whose name identifies it: the ports
// are arbitrary.
const (
	devicePrefix   = "weft-"
	rejectedSuffix = "-rejected"
)

func deviceName(k source.Kind, rejected bool) string {
	name := devicePrefix + string(k)
	if rejected {
		name += rejectedSuffix
	}
	return name
}

// deviceKind parses a name of deviceName; for other names it returns
// source.Other.
func deviceKind(name string) (k source.Kind, rejected bool) {
	name, ours := strings.CutPrefix(name, devicePrefix)
	name, rejected = strings.CutSuffix(name, rejectedSuffix)
	if _, known := sources.ByKind(source.Kind(name)); !ours || !known {
		return source.Other, false
	}
	return source.Kind(name), rejected
}

// protoOf is the protocol that carries reports of a kind.
func protoOf(k source.Kind) model.Proto {
	s, _ := sources.ByKind(k)
	return s.Proto
}
