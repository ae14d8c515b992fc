// Package sources is the table of all report sources. A new source is a wire
// package, an ingest package, and a row here.
package sources

import (
	"slices"

	"github.com/weft-telemetry/weft/ingest/bmp"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/gnmi"
	"github.com/weft-telemetry/weft/ingest/intreport"
	"github.com/weft-telemetry/weft/ingest/ipfix"
	"github.com/weft-telemetry/weft/ingest/nccl"
	"github.com/weft-telemetry/weft/ingest/otlp"
	"github.com/weft-telemetry/weft/ingest/sflow"
	"github.com/weft-telemetry/weft/ingest/source"
)

// All returns every source, in the order of the configuration.
func All() []source.Source {
	return []source.Source{DTA, intreport.Source, erspan.Source, sflow.Source, ipfix.Source, gnmi.Source, gnmi.DialOut, otlp.Source, bmp.Source, nccl.Source}
}

// ByKind returns the source of a kind.
func ByKind(k source.Kind) (source.Source, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s source.Source) bool { return s.Kind == k })
	if i < 0 {
		return source.Source{}, false
	}
	return all[i], true
}

// Kinds returns all kinds of packets that a capture may have.
func Kinds() []source.Kind {
	list := []source.Kind{source.Other}
	for _, s := range All() {
		list = append(list, s.Kind)
	}
	return append(list, source.SPAN)
}

// DefaultConfigs returns the default configuration of every source.
func DefaultConfigs() map[source.Kind]source.Config {
	m := map[source.Kind]source.Config{}
	for _, s := range All() {
		m[s.Kind] = s.NewConfig()
	}
	return m
}
