package serve

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// Reload takes a new configuration: tokens, tenants, jobs, the certificate's
// content, retention, size, and the routes of the topology file. It returns the keys that
// have changed and need a restart. On an error what was taken before it stays.
func (s *Service) Reload(ctx context.Context, cfg Config) (restart []string, err error) {
	for i := range settings {
		one := &settings[i]
		if !one.Reload && one.Value(&cfg) != one.Value(&s.cfg) {
			restart = append(restart, one.Key)
		}
	}
	if !reflect.DeepEqual(cfg.Switches, s.cfg.Switches) {
		restart = append(restart, "switches")
	}
	a, err := cfg.api()
	if err != nil {
		return restart, err
	}
	a.TLSCert, a.TLSKey = s.cfg.API.TLSCert, s.cfg.API.TLSKey // other names need a restart
	if err := s.server.Reload(&a); err != nil {
		return restart, err
	}
	if err := s.deps.Store.SetLimits(cfg.Store.Retention, cfg.Store.MaxSize); err != nil {
		return restart, err
	}
	now := *s.stored.Load()
	now.max = cfg.Store.MaxSize
	s.stored.Store(&now)
	asked := s.door.Do(ctx, func() { err = s.control.SetJobs(cfg.Jobs) })
	if err := cmp.Or(asked, err); err != nil {
		return restart, err
	}
	return restart, s.reroute(ctx, &cfg)
}

// reroute takes the routes of a topology file, from now on. The fabric itself
// must be the same: lists, memory and analyses are laid out for it.
func (s *Service) reroute(ctx context.Context, cfg *Config) error {
	doc, err := file.Read(cfg.Topology)
	if err != nil {
		return err
	}
	if same, err := sameFabric(s.fabric.doc, doc); err != nil || !same {
		return fmt.Errorf("%s: nodes or links have changed, want a restart for them; only routes can change while serving", cfg.Topology)
	}
	routes, err := topo.NewRoutes(s.fabric.doc.Fabric, topo.RouteConfig{Seed: doc.Seed, Overrides: doc.Overrides})
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.Topology, err)
	}
	old := s.fabric.routes.Config()
	if old.Seed == doc.Seed && reflect.DeepEqual(old.Overrides, doc.Overrides) {
		return nil
	}
	asked := s.door.Do(ctx, func() {
		if err = s.control.SetRoutes(model.TimeOf(time.Now()), routes); err == nil {
			s.fabric.routes = routes
		}
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
