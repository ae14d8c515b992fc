package control

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
)

// NoDevices is Devices of a fabric that reports and takes no commands: they return
// an error.
type NoDevices struct{}

var errReadOnly = fmt.Errorf("this controller is passive: it sends no commands to devices: %w", api.ErrUnsupported)

// Active is part of portwatch.Fabric: which ports have traffic is not known.
func (NoDevices) Active(list []model.Port) []model.Port { return list }

// SetShift is part of portwatch.Fabric.
func (NoDevices) SetShift(model.Port, uint8) error { return errReadOnly }

// Mark is part of tracewatch.Marker.
func (NoDevices) Mark(model.NodeID, *filter.Filter[headers.Frame]) error { return errReadOnly }

// Unmark is part of tracewatch.Marker.
func (NoDevices) Unmark(model.NodeID, *filter.Filter[headers.Frame]) error { return errReadOnly }

// Inject is part of probe.Injector.
func (NoDevices) Inject(model.NodeID, prober.Series) error { return errReadOnly }

// PollFlow is part of Devices.
func (NoDevices) PollFlow(model.FlowKey) bool { return false }

// Counters is part of Devices.
func (NoDevices) Counters(list []PortCounters) []PortCounters { return list }
