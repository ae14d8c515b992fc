package cluster

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

var away = flag.Duration("away", 0, "how long TestAway leaves broker and store away, after what was published meanwhile")

// awayForwarder is a decoder's Publisher, which never waits: at a tick something goes away, and
// at a later one it comes back. From then on it publishes no faster than the broker takes it.
type awayForwarder struct {
	*Publisher
	t        *testing.T
	ticks    int
	from, to int
	leave    func()
	comeBack func()
}

// Tick is part of control.Forwarder.
func (f *awayForwarder) Tick(now model.Time) {
	f.Publisher.Tick(now)
	switch f.ticks++; {
	case f.ticks == f.from:
		f.leave()
	case f.ticks == f.to:
		time.Sleep(*away)
		f.comeBack()
	}
	if f.ticks < f.from || f.ticks >= f.to {
		f.flush()
	}
}

func (f *awayForwarder) flush() {
	for _, s := range []Stream{f.streams.Flows, f.streams.Lead} {
		if err := s.Flush(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestAway has the broker, or the store, away while half of a recording arrives. What the
// decoder's buffers hold is analysed afterwards, as if nothing had been; what they do not hold is
// counted, and the rest is analysed.
func TestAway(t *testing.T) {
	race.LeaveToPlainRun(t) // the processes are what works
	want := shipped.alone(t)
	server := startServer(t)
	for _, tc := range []struct {
		name   string
		store  bool
		buffer model.Bytes // of a partition in the decoder
	}{
		{"store", true, model.MiB},
		{"broker", false, 4 * model.MiB},
		{"brokerwithoutroom", false, 64 * model.KiB},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := startCluster(t, server, "away_"+tc.name, 1, takeoverLease)
			streams, err := openStreams(t.Context(), c.conn, 1, tc.buffer)
			if err != nil {
				t.Fatal(err)
			}
			cfg := shipped.config(t)
			controller, err := serve.ControllerConfig(&cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			to := &awayForwarder{Publisher: NewPublisher(&controller, streams, nil), t: t, from: 120, to: 300}
			to.leave, to.comeBack = c.brokers[0].kill, func() { c.startBroker(0) }
			if tc.store {
				to.leave, to.comeBack = server.Kill, func() {
					if err := server.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
			r, err := serve.NewForwardingReplay(t.Context(), cfg, nil, to)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Run(t.Context(), shipped.open(t, &cfg)); err != nil {
				t.Fatal(err)
			}
			if to.ticks < to.to {
				t.Fatalf("%d ticks; want more than %d", to.ticks, to.to)
			}
			back := time.Now()
			c.awaitLast(to.Publisher)
			events, parts := to.Refused()
			t.Logf("%v after the end all was stored; %d batches of events and %d parts of slots did not fit", time.Since(back), events, parts)
			for name, count := range map[string]struct {
				stream.Stats
				refused uint64
			}{"flows": {streams.Flows.Stats(), parts}, "lead": {streams.Lead.Stats(), events}} {
				if lost := count.Full + count.TooLarge; count.Published != count.Delivered+lost || lost != count.refused {
					t.Errorf("%s: %+v with %d refused; want all that was published delivered or counted", name, count.Stats, count.refused)
				}
			}
			c.end()
			got := c.contents()
			if tc.buffer >= model.MiB {
				if events+parts > 0 {
					t.Errorf("%d batches of events and %d parts of slots did not fit; want none", events, parts)
				}
				compare(t, want, got)
				return
			}
			if events+parts == 0 || len(got["flows"]) >= len(want["flows"]) {
				t.Errorf("all of %d flows of slots are stored, and %d batches and parts did not fit; want some lost, and counted", len(got["flows"]), events+parts)
			}
			checkOnce(t, got)
		})
	}
}

// checkOnce expects no flow of a slot twice, and none of a slot that did not exist.
func checkOnce(t *testing.T, got map[string][]string) {
	t.Helper()
	for kind := range got {
		if n := len(slices.Compact(slices.Clone(got[kind]))); n != len(got[kind]) {
			t.Errorf("%d of %d %s are there twice", len(got[kind])-n, len(got[kind]), kind)
		}
	}
}
