package prove

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
)

// records runs a scenario under a controller, asks it for the topology and for what else is wanted of
// the run, and ends it.
func records(ctx context.Context, s *scenario.Scenario, ask func(c *client.Client, since time.Time) error) (top api.Topology, err error) {
	run, err := live.Start(ctx, s, live.StartOptions{})
	if err != nil {
		return top, err
	}
	defer func() {
		if closed := run.Close(); err == nil {
			err = closed
		}
	}()
	if err := run.Wait(ctx); err != nil {
		return top, err
	}
	c := run.Client()
	if top, err = c.Topology(ctx); err != nil {
		return top, err
	}
	return top, ask(c, run.Start())
}
