package core

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// passiveDevices take no commands.
type passiveDevices struct{ control.Devices }

func (passiveDevices) Active(list []model.Port) []model.Port                       { return list }
func (passiveDevices) Counters(list []control.PortCounters) []control.PortCounters { return list }

// stalledCore is a core of a small fabric, which is not run.
func stalledCore(t *testing.T, in Input, s Appender) *Core {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(control.DefaultConfig(topo.NewIntent(routes)))
	cfg.Controller.TimeWindow, cfg.Controller.Epoch = time.Minute, time.Unix(0, 0)
	cfg.Controller.SampleInterval = time.Second
	c, err := New(cfg, Deps{Devices: passiveDevices{}, Log: slog.New(slog.DiscardHandler)}, in)
	if err != nil {
		t.Fatal(err)
	}
	c.Writer = NewBatchWriter(s, time.Hour, 100, c.log)
	return c
}
