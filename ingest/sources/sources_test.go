package sources

import (
	"testing"

	"github.com/weft-telemetry/weft/ingest/source"
)

// TestRegistryIsComplete: every source has what the service, recordings and
// replay read of it, and no two share a kind.
func TestRegistryIsComplete(t *testing.T) {
	switchKeys := map[string]source.Kind{} // one map of a switch has the keys of all sources
	kinds := map[source.Kind]bool{source.Other: true, source.SPAN: true}
	for _, s := range All() {
		if s.Kind == "" || kinds[s.Kind] || s.Title == "" || s.NewConfig == nil {
			t.Errorf("source %q, %q: want a kind of its own, a title and a configuration", s.Kind, s.Title)
			continue
		}
		kinds[s.Kind] = true
		if found, ok := ByKind(s.Kind); !ok || found.Title != s.Title {
			t.Errorf("ByKind(%s) = %q, %v; want %q", s.Kind, found.Title, ok, s.Title)
		}
		for _, k := range s.SwitchKeys {
			if other, taken := switchKeys[k.Key]; taken {
				t.Errorf("switch key %q is one of %s and of %s", k.Key, other, s.Kind)
			}
			switchKeys[k.Key] = s.Kind
		}
		c := s.NewConfig()
		if _, adapts := c.(source.Adapter); !adapts && s.Kind != DTA.Kind {
			t.Errorf("the configuration of %s is no source.Adapter, so its socket would never open", s.Kind)
		}
		if err := c.Check(); err != nil {
			t.Errorf("the default configuration of %s: %v", s.Kind, err)
		}
		keys := map[string]bool{}
		for i, set := range c.Settings() {
			if set.Key == "" || set.About == "" || set.Value == nil || keys[set.Key] {
				t.Errorf("setting %d of %s: %q, %q; want a key of its own, a description and a value", i, s.Kind, set.Key, set.About)
			}
			keys[set.Key] = true
		}
		// A copy has settings of its own: a reload must not write into what runs.
		for i, set := range c.Clone().Settings() {
			if set.Value == c.Settings()[i].Value {
				t.Errorf("%s.%s of a clone is the original's", s.Kind, set.Key)
			}
		}
	}
	if _, ok := ByKind("no-such"); ok {
		t.Error("ByKind finds a source that is not there")
	}
}
