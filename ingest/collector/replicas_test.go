package collector

import (
	"log/slog"
	"strings"
	"testing"
)

func TestReplicasMustDivideCollectors(t *testing.T) {
	for _, tc := range []struct {
		collectors string
		replicas   int
		want       string
	}{{"a:1,b:1,c:1", 2, "divides"}, {"a:1", -1, "divides"}} {
		cfg := DefaultConfig()
		cfg.Collectors, cfg.Replicas = strings.Split(tc.collectors, ","), tc.replicas
		if _, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d replicas of %s: %v; want an error with %q", tc.replicas, tc.collectors, err, tc.want)
		}
	}
}
