package serve

import (
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestOverloadIsNoLoss: a packet of which one mirror arrived is lost, unless reports
// were overwritten or dropped by the kernel meanwhile: then nothing is known of it.
func TestOverloadIsNoLoss(t *testing.T) {
	for name, tc := range map[string]struct {
		overload func(in *socketInput, put func(n int, data []byte))
		want     trace.End
	}{
		"no overload": {func(*socketInput, func(int, []byte)) {}, trace.Lost},
		"overwritten": {func(in *socketInput, put func(int, []byte)) {
			most := 0
			for _, c := range in.fabric.memory().Classes {
				most = max(most, c.Capacity)
			}
			put(2*most, []byte("no mirror"))
		}, trace.Unknown},
		"dropped by the kernel": {func(in *socketInput, _ func(int, []byte)) {
			st := in.collector.Status()
			st.Workers[0].Socket.Dropped++
			in.last.Store(&st)
		}, trace.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			st, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			stream, err := inproc.New(inproc.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(t.Context(), cfg, Deps{Store: st, Stream: stream, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			writer, err := translate.NewLocalWriter(s.input.collector.Memory(), 0, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := translate.New(translate.DefaultConfig(), writer.Plan, writer)
			if err != nil {
				t.Fatal(err)
			}
			now := s.input.clock.Now()
			put := func(n int, data []byte) {
				for range n {
					tr.Put(now, []dta.Report{{Primitive: dta.Append, List: s.fabric.lists.Mirrors.First, Data: data}})
				}
				tr.Drain(now)
			}
			poll := func() {
				now = now.Add(dropInterval)
				if _, err := s.input.poll(now); err != nil {
					t.Fatal(err)
				}
			}
			f := s.Fabric()
			tor := f.Node(f.Hosts()[0]).Ports[0].Peer
			m := mirror.Mirror{Reasons: mirror.Debug, Switch: tor.Node, In: tor.Port, Time: now, Frame: frame(f, f.Hosts()[0], f.Hosts()[15], 1000, 7)}
			m.Length = uint16(len(m.Frame))
			put(1, m.AppendTo(nil))
			poll()
			tc.overload(s.input, put)
			poll()
			s.Controller.Tick(now.Add(time.Minute))
			if err := s.Writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := st.Traces(t.Context(), record.Query{})
			if err != nil || len(page.Items) != 1 || page.Items[0].End != tc.want.String() {
				t.Errorf("traces %+v, %v; want one that ends as %v", page.Items, err, tc.want)
			}
		})
	}
}

// TestDropWatch: it reads a counter once per interval, also after the clock was set
// back, and tells when it has grown.
func TestDropWatch(t *testing.T) {
	var d dropWatch
	at := model.Time(time.Hour)
	for i, tc := range []struct {
		step  time.Duration
		count uint64
		want  bool
	}{
		{0, 0, false},
		{dropInterval, 3, true},
		{dropInterval / 2, 9, false}, // not read
		{dropInterval / 2, 9, true},
		{dropInterval, 9, false},
		{-time.Minute, 10, true},
	} {
		at = at.Add(tc.step)
		if got := d.grew(at, func() uint64 { return tc.count }); got != tc.want {
			t.Errorf("step %d: grew(%d) = %v; want %v", i, tc.count, got, tc.want)
		}
	}
}
