package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// traceGrowth measures assemblers with more and more packets in flight, and with
// more and more mirrors lost.
func traceGrowth(ctx context.Context) ([]Plot, error) {
	speed := func(title, x string) plot.Chart {
		return plot.Chart{
			Title: title, XTitle: x, YTitle: "M mirrors per second of CPU",
			Series: []plot.Series{{Name: "Weft"}, {Name: "gopacket.NewPacket and a map"}},
		}
	}
	open := speed("mirrors into traces, by packets in flight", "packets in flight")
	open.LogX = true
	memory := plot.Chart{
		Title: "memory of the assemblers, by packets in flight", XTitle: "packets in flight",
		YTitle: "MB", LogX: true, LogY: true,
	}
	memory.Series = []plot.Series{{Name: "Weft"}, {Name: "gopacket.NewPacket and a map"}}
	for inFlight := 1 << 10; inFlight <= 1<<18; inFlight *= 4 {
		g, err := measureGrowth(ctx, inFlight, 0)
		if err != nil {
			return nil, err
		}
		for i := range g.rate {
			appendPoint(&open.Series[i], float64(inFlight), g.rate[i])
			appendPoint(&memory.Series[i], float64(inFlight), g.bytes[i])
		}
	}
	loss := speed("mirrors into traces, by loss of mirrors, 16K packets in flight", "mirrors lost (%)")
	for percent := 0; percent <= 50; percent += 10 {
		g, err := measureGrowth(ctx, 1<<14, float64(percent)/100)
		if err != nil {
			return nil, err
		}
		for i := range g.rate {
			appendPoint(&loss.Series[i], float64(percent), g.rate[i])
		}
	}
	return []Plot{{"trace-in-flight", open}, {"trace-memory", memory}, {"trace-loss", loss}}, nil
}

func appendPoint(s *plot.Series, x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// growth is a point: speeds in millions of mirrors per second, memory in
// megabytes, of Weft and of the straightforward assembler.
type growth struct{ rate, bytes [2]float64 }

func measureGrowth(ctx context.Context, inFlight int, loss float64) (g growth, err error) {
	share := uint64(loss * math.MaxUint64)
	var from [2]*mirrorSource
	for i := range from {
		if from[i], err = newMirrored(inFlight); err != nil {
			return g, err
		}
		from[i].loss = share
	}
	before := liveMemory()
	cfg := trace.DefaultConfig()
	cfg.CloseAfter, cfg.MaxTraces = from[0].quiet(), 4*inFlight
	closed := 0
	a, err := trace.NewAssembler(cfg, from[0].intent, func(*trace.Trace) { closed++ })
	if err != nil {
		return g, err
	}
	weft := func(n int) {
		var m mirror.Mirror
		for range n {
			now, data := from[0].next()
			if _, err := m.Parse(data); err != nil {
				panic("bench: " + err.Error())
			}
			a.AddMirror(now, &m)
		}
	}
	weft(20 * inFlight) // four batches: the slabs have reached their final size
	g.bytes[0] = float64(liveMemory()-before) / 1e6
	before = liveMemory()
	obvious := &mapAssembler{routes: from[1].intent.At(0), quiet: from[1].quiet(), traces: map[mapKey]*mapTrace{}}
	theirs := func(n int) {
		for range n {
			now, data := from[1].next()
			obvious.add(now, data)
		}
	}
	theirs(20 * inFlight)
	g.bytes[1] = float64(liveMemory()-before) / 1e6
	ns, err := alternateRoundsOfProcess(ctx, 200_000, weft, theirs)
	if err != nil {
		return g, err
	}
	if s := a.Stats(); s.Evicted > 0 || closed == 0 {
		return g, fmt.Errorf("bench: %+v, want traces closed and none evicted", s)
	}
	for i := range ns {
		g.rate[i] = 1e3 / ns[i]
	}
	runtime.KeepAlive(obvious)
	return g, nil
}

// liveMemory returns the memory in use.
func liveMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
