package scenario

import (
	"strings"
	"testing"
)

func TestOverride(t *testing.T) {
	const text = "name: x # a name\nduration: 1ms\nfabric: {alpha: 1/8, mtu: 1024}\ntraffic:\n  - {kind: flows, load: 10%}\n"
	for settings, want := range map[string]string{
		"fabric.alpha=1/4":    "alpha: 1/4",
		"traffic.0.load=40%":  "load: 40%",
		"management.loss=1%":  "management:\n  loss: 1%",
		"fabric.mtu=4096":     "mtu: 4096",
		"duration=5ms":        "duration: 5ms",
		"traffic.0.hosts=[a]": "hosts:\n  - a",
	} {
		got, err := Override([]byte(text), settings)
		if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), "kind: flows") {
			t.Errorf("Override(%s) = %s, %v; want %q and the rest", settings, got, err, want)
		}
	}
	for _, settings := range []string{"fabric", "=1", "fabric..alpha=1", "traffic.1.load=1", "traffic.x.load=1", "name.x=1", "fabric.mtu=[", "a.=1"} {
		if got, err := Override([]byte(text), settings); err == nil {
			t.Errorf("Override(%s) = %s; want an error", settings, got)
		}
	}
	if got, err := Override([]byte(text)); err != nil || string(got) != text {
		t.Errorf("without settings: %s, %v; want the text as it is", got, err)
	}
}
