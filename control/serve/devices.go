package serve

import (
	"fmt"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
)

// noDevices is control.Devices of a fabric that reports and takes no commands.
// Commands return errReadOnly.
type noDevices struct{}

var errReadOnly = fmt.Errorf("this controller is passive: it sends no commands to devices: %w", api.ErrUnsupported)

// Active is part of portwatch.Fabric: which ports have traffic is not known.
func (noDevices) Active(list []model.Port) []model.Port { return list }

// SetShift is part of portwatch.Fabric.
func (noDevices) SetShift(model.Port, uint8) error { return errReadOnly }

// Mark is part of tracewatch.Marker.
func (noDevices) Mark(model.NodeID, *filter.Filter[headers.Frame]) error { return errReadOnly }

// Unmark is part of tracewatch.Marker.
func (noDevices) Unmark(model.NodeID, *filter.Filter[headers.Frame]) error { return errReadOnly }

// Inject is part of probe.Injector.
func (noDevices) Inject(model.NodeID, prober.Series) error { return errReadOnly }

// PollFlow is part of control.Devices.
func (noDevices) PollFlow(model.FlowKey) bool { return false }

// Counters is part of control.Devices.
func (noDevices) Counters(list []control.PortCounters) []control.PortCounters { return list }
