package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/source"
)

// Roles are the parts of a cluster. Receive and decode are one process.
var Roles = []string{"receive", "decode", "analyze", "lead", "api"}

// ControllerConfig reads the topology and returns the configuration of a controller, whose
// numbers begin with 1. Kinds are those of a recording; nil: there is none.
func ControllerConfig(cfg *Config, kinds map[source.Kind]uint64) (control.Config, error) {
	f, err := readFabric(cfg)
	if err != nil {
		return control.Config{}, err
	}
	f.addKinds(kinds)
	return f.controllerConfig(cfg, core.LastIDs{}), nil
}

// Reader is a core that answers clients from a store that others write.
type Reader struct{ *core.Core }

// NewReader opens the API's socket. Run must follow.
func NewReader(_ context.Context, cfg Config, deps Deps) (*Reader, error) {
	f, err := readFabric(&cfg)
	if err != nil {
		return nil, err
	}
	a, err := cfg.api()
	if err != nil {
		return nil, err
	}
	in := &readerInput{}
	c := core.DefaultConfig(f.controllerConfig(&cfg, core.LastIDs{}))
	c.API, c.StoreLimit = &a, cfg.Store.MaxSize
	r := &Reader{}
	if r.Core, err = core.New(c, core.Deps{Devices: control.NoDevices{}, Store: deps.Store, Console: deps.Console, Build: deps.Build, Log: deps.Log, Prover: deps.Prover}, in); err != nil {
		return nil, err
	}
	in.core = r.Core
	if err := r.Listen(); err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	return r, nil
}

// readerInput is the Input of a process without reports.
type readerInput struct{ core *core.Core }

// Run is part of core.Input.
func (in *readerInput) Run(ctx context.Context) error {
	defer in.core.Loop.Close()
	in.core.Loop.RunUntil(ctx, nil)
	return nil
}

// Clock is part of core.Input.
func (in *readerInput) Clock() api.Clock {
	now := time.Now()
	return api.Clock{Now: now, Wall: now, Mode: "serve", Pace: 1}
}

// Ready is part of core.Input.
func (in *readerInput) Ready() error { return nil }

// Stages is part of core.Input.
func (in *readerInput) Stages() []api.Stage { return nil }
