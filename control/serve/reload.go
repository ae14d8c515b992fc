package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// Reload applies a new configuration: tokens, tenants, jobs, the content of the
// certificate, the reporters' keys, tokens and settings of alerts, retention, size, log
// level, and the routes of the topology file. It returns the changed keys that need a restart. On an error nothing changes. One
// goroutine calls it.
func (s *Service) Reload(ctx context.Context, cfg Config) (restart []string, err error) {
	// Everything is checked before anything is applied.
	a, err := s.access(&cfg)
	if err != nil {
		return nil, err
	}
	keys, err := s.newKeys(&cfg)
	if err != nil {
		return nil, err
	}
	routes, err := s.newRoutes(&cfg)
	if err != nil {
		return nil, err
	}
	applyAlerts := func() {}
	if s.alerts != nil {
		if applyAlerts, err = s.alerts.Prepare(cfg.Alerts); err != nil {
			return nil, fmt.Errorf("alerts.%w", err)
		}
	}
	if err := s.deps.Store.SetLimits(cfg.Store.Retention, cfg.Store.MaxSize); err != nil {
		return nil, err
	}
	undo := func(err error) error {
		return errors.Join(err, s.deps.Store.SetLimits(s.applied.Store.Retention, s.applied.Store.MaxSize))
	}
	if err := s.instruct(ctx, cfg.Jobs, routes); err != nil {
		return nil, undo(err)
	}
	if err := s.ReloadAPI(&a); err != nil {
		return nil, undo(err) // its files have changed since they were tried
	}
	applyAlerts()
	s.input.door.setKeys(&cfg, s.fabric, keys, s.log)
	if s.deps.Level != nil {
		s.deps.Level.Set(cfg.Log.level())
	}
	s.applied = cfg.clone()
	s.SetStoreLimit(cfg.Store.MaxSize)
	return s.restarts(&cfg), nil
}

// restarts returns the changed keys that need a restart.
func (s *Service) restarts(cfg *Config) (list []string) {
	for i := range settings {
		one := &settings[i]
		if !one.Reload && one.Value(cfg) != one.Value(&s.cfg) {
			list = append(list, one.Key)
		}
	}
	if !reflect.DeepEqual(cfg.Switches, s.cfg.Switches) {
		list = append(list, "switches")
	}
	sameTarget := func(a, b alerts.Target) bool { return a.Kind == b.Kind && a.URL == b.URL } // tokens are reloaded
	if !slices.EqualFunc(cfg.Alerts.Targets, s.cfg.Alerts.Targets, sameTarget) {
		list = append(list, "alerts.targets")
	}
	return list
}

// access is the new API configuration. Address and certificate files stay until a
// restart, so the new values must suit them.
func (s *Service) access(cfg *Config) (api.Config, error) {
	next := cfg.clone()
	next.API.Listen, next.API.TLSCert, next.API.TLSKey = s.cfg.API.Listen, s.cfg.API.TLSCert, s.cfg.API.TLSKey
	if err := next.checkOpen(); err != nil {
		return api.Config{}, err
	}
	a, err := next.api()
	if err != nil {
		return a, err
	}
	return a, api.CheckConfig(a)
}

// newKeys reads the reporters' keys. Whether a MAC is required stays until a restart.
func (s *Service) newKeys(cfg *Config) (*keyfile.File, error) {
	if s.cfg.DTA().Require == sources.RequireMAC && cfg.DTA().Keys == "" {
		return nil, bad("dta.keys", "none, but dta.require is %s until a restart; want the file of the keys", sources.RequireMAC)
	}
	return readKeys(cfg)
}

// newRoutes reads the routes of a topology file; nil: unchanged. The fabric must be
// the same: lists, memory and analyses are laid out for it.
func (s *Service) newRoutes(cfg *Config) (*topo.Routes, error) {
	doc, err := file.Read(cfg.Topology)
	if err != nil {
		return nil, err
	}
	if same, err := sameFabric(s.fabric.doc, doc); err != nil || !same {
		return nil, fmt.Errorf("%s: nodes or links have changed, which needs a restart; a reload applies routes only", cfg.Topology)
	}
	old := s.fabric.routes.Config()
	if old.Seed == doc.Seed && reflect.DeepEqual(old.Overrides, doc.Overrides) {
		return nil, nil
	}
	routes, err := topo.NewRoutes(s.fabric.doc.Fabric, topo.RouteConfig{Seed: doc.Seed, Overrides: doc.Overrides})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Topology, err)
	}
	return routes, nil
}

// instruct sets the jobs and intended routes of the controller from now on.
func (s *Service) instruct(ctx context.Context, jobs []control.Job, routes *topo.Routes) (err error) {
	asked := s.Loop.Call(ctx, func() {
		if err = s.Controller.SetJobs(jobs); err != nil || routes == nil {
			return
		}
		if err = s.Controller.SetRoutes(s.input.clock.Now(), routes); err != nil {
			err = errors.Join(err, s.Controller.SetJobs(s.applied.Jobs))
			return
		}
		s.fabric.routes = routes
	})
	if asked != nil {
		return asked
	}
	return err
}

// sameFabric compares nodes and links.
func sameFabric(a, b *file.Document) (bool, error) {
	var text [2]bytes.Buffer
	for i, d := range []*file.Document{a, b} {
		bare := file.Document{Fabric: d.Fabric}
		if err := file.Write(&text[i], file.YAML, &bare); err != nil {
			return false, err
		}
	}
	return strings.TrimSpace(text[0].String()) == strings.TrimSpace(text[1].String()), nil
}
