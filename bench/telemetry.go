package bench

import (
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// programs returns what one switch runs.
type programs func(dev inswitch.Device) ([]inswitch.Program, error)

// everyProgram is all that a switch can run, with default configurations, in the
// order that inswitch.Pipeline requires. Add new ones here.
func everyProgram(dev inswitch.Device) ([]inswitch.Program, error) {
	causes, err := epoch.New(epoch.DefaultConfig(), dev)
	if err != nil {
		return nil, err
	}
	flows, err := flowset.New(dev, flowset.DefaultConfig())
	if err != nil {
		return nil, err
	}
	mirrors, err := mirror.New(dev, mirror.DefaultConfig())
	if err != nil {
		return nil, err
	}
	labels, err := label.New(label.DefaultConfig(), dev)
	if err != nil {
		return nil, err
	}
	return []inswitch.Program{causes, flows, mirrors, labels}, nil
}

// attach installs them in every switch, with a management network that receives
// their reports.
func (of programs) attach(n *sim.Network) error {
	cfg := simhost.DefaultConfig()
	cfg.Isolated = true
	var err error
	if cfg.Carrier, err = simhost.NewManagement(n, simhost.DefaultManagementConfig(),
		func(model.Time, model.NodeID, []byte) {}); err != nil {
		return err
	}
	for _, sw := range n.Switches() {
		list, err := of(simhost.Describe(n, sw.ID, 0))
		if err != nil {
			return err
		}
		if _, err := simhost.Attach(n, sw.ID, inswitch.NewPipeline(list...), cfg); err != nil {
			return err
		}
	}
	return nil
}
