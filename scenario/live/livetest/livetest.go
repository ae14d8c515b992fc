// Package livetest runs demos for tests of what is built on them.
package livetest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// Run runs a demo on a loopback address while use is running. On a busy machine its answers are
// later, and none is refused.
func Run(t *testing.T, o live.Options, use func(ctx context.Context, url string)) {
	t.Helper()
	o.AnswerTime = time.Hour
	o.Listen, o.Build, o.Log = "127.0.0.1:0", api.Build{Version: "test"}, slog.New(slog.DiscardHandler)
	s, err := live.NewSystem(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	use(ctx, "http://"+s.Addr().String()+"/")
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("demo: %v", err)
	}
}
