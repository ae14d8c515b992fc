package reshuffle

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

func fabric(t *testing.T) *topo.Intent {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return topo.NewIntent(r)
}

// Everything that is not a mirror, or does not fit, is counted, on both sides of the stream.
func TestLossesAreCounted(t *testing.T) {
	s, err := inproc.New(inproc.Config{Partitions: 2, BufferSize: model.KiB})
	if err != nil {
		t.Fatal(err)
	}
	r := New(s, 2)
	if err := r.Begin(0); err != nil {
		t.Fatal(err)
	}
	r.AddMirror(1, []byte("nonsense"))
	m := mirror.Mirror{Switch: 1, Time: 5, Length: 100, Frame: make([]byte, 100)}
	data := m.AppendTo(nil)
	for range 20 {
		r.AddMirror(2, data)
	}
	st := r.Stats()
	if st.Malformed != 1 || st.Lost == 0 || st.Mirrors == 0 || st.Mirrors+st.Lost != 20 {
		t.Fatalf("%+v; want 1 malformed and 20 mirrors, of which some are lost", st)
	}
	sub, err := s.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAnalyzer(trace.DefaultConfig(), fabric(t), sub, func(*trace.Trace) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Poll(3); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(0, stream.Message{At: 4, Kind: 77}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Poll(model.Time(time.Hour)); !errors.Is(err, stream.ErrEnded) {
		t.Errorf("the end of the stream is %v; want ErrEnded", err)
	}
	if got := a.Stats(); got.Mirrors != st.Mirrors || got.Malformed != 1 {
		t.Errorf("%+v; want %d mirrors and 1 malformed message", got, st.Mirrors)
	}
}
