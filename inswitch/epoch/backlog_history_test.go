package epoch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// sample is a backlog at an instant, as the switch had it.
type sample struct {
	at    model.Time
	bytes uint64
}

// line returns the backlog that a history says for an instant, and whether it
// says one.
func (h *backlogHistory) line(at model.Time) (float64, bool) {
	points := append([]backlogPoint(nil), h.points[:h.used]...)
	if !h.quiet {
		points = append(points, h.sample)
	}
	for i := len(points) - 1; i >= 0; i-- {
		p := points[i]
		switch {
		case p.at > at:
		case i == len(points)-1 || p.at == at:
			return float64(p.bytes), true
		default:
			next := points[i+1]
			return float64(p.bytes) + (float64(next.bytes)-float64(p.bytes))*float64(at-p.at)/float64(next.at-p.at), true
		}
	}
	return 0, !h.cut
}

// anyBacklogs draws a backlog that fills and drains at changing rates.
func anyBacklogs(rng *rand.Rand, phases int) (list []sample) {
	at, bytes := model.Time(time.Millisecond), uint64(0)
	for range phases {
		fills, packets := rng.IntN(2) == 0, 1+rng.IntN(120)
		for gap := 40 + rng.IntN(200); packets > 0; packets-- {
			at += model.Time(gap + rng.IntN(40))
			if fills {
				bytes += 1000
			} else {
				bytes -= min(bytes, 1000)
			}
			list = append(list, sample{at, bytes})
		}
	}
	return list
}

// TestHistoryPassesAllSamples: as long as no point was removed, the line passes
// every sample within the error; where a backlog begins to count, within twice the
// error and a packet. The reference is the list of all samples.
func TestHistoryPassesAllSamples(t *testing.T) {
	const deviation = 2000
	compared := 0
	for seed := range uint64(60) {
		h := backlogHistory{memory: pauseMemory}
		list := anyBacklogs(rand.New(rand.NewPCG(seed, 1)), 6)
		for i, s := range list {
			h.observe(s.at, s.bytes, deviation)
			if h.used == len(h.points) {
				break // the next point may remove one
			}
			for _, before := range list[:i+1] {
				got, known := h.line(before.at)
				if off := math.Abs(got - float64(before.bytes)); !known || off > 2*deviation+1000 {
					t.Fatalf("seed %d, sample %d: the line says %v, %v at %v, where %d were queued", seed, i, got, known, before.at, before.bytes)
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// TestHistoryForgetsGradually: with more changes than points the newest part stays
// exact, the first point stays for the memory, and the area below the line is
// near that of all samples, on average.
func TestHistoryForgetsGradually(t *testing.T) {
	const deviation = 2000
	const seeds = 20
	sum := 0.0
	for seed := range uint64(seeds) {
		h := backlogHistory{memory: pauseMemory}
		list := anyBacklogs(rand.New(rand.NewPCG(seed, 2)), 60)
		for _, s := range list {
			h.observe(s.at, s.bytes, deviation)
		}
		last := list[len(list)-1]
		if got, _ := h.line(last.at); math.Abs(got-float64(last.bytes)) > deviation {
			t.Fatalf("seed %d: the line ends at %v; want %d", seed, got, last.bytes)
		}
		if last.at.Sub(list[0].at) < pauseMemory && h.cut {
			t.Fatalf("seed %d: the history of %v was cut", seed, last.at.Sub(list[0].at))
		}
		want, got := 0.0, 0.0
		for i := 1; i < len(list); i++ {
			length := float64(list[i].at - list[i-1].at)
			want += float64(list[i-1].bytes) * length
			says, _ := h.line(list[i-1].at)
			got += says * length
		}
		sum += math.Abs(got-want) / want / seeds
	}
	if sum > 0.15 {
		t.Errorf("areas differ by %.2f on average; want at most 0.15", sum)
	}
	t.Logf("areas differ by %.3f on average", sum)
}

// TestHistoryOfAnUnsteadyClock: a clock that is set back starts the history anew.
func TestHistoryOfAnUnsteadyClock(t *testing.T) {
	h := backlogHistory{memory: pauseMemory}
	for i := range 10 {
		h.observe(model.Time(1000+100*i), uint64(10_000*i), 2000)
	}
	h.observe(500, 50_000, 2000)
	if got, _ := h.line(500); h.used != 1 || !h.cut || got != 50_000 {
		t.Errorf("%d points, cut %v, %v at 500; want 1, true, 50000", h.used, h.cut, got)
	}
}

// TestSmallBacklogsHaveNoHistory: packets that wait for the wire are no backlog,
// and a quiet pair leaves the reports.
func TestSmallBacklogsHaveNoHistory(t *testing.T) {
	h := backlogHistory{memory: pauseMemory}
	for i := range 1000 {
		h.observe(model.Time(i*100), uint64(i%4)*1000, 2000)
	}
	if h.used != 0 {
		t.Errorf("%d points; want none", h.used)
	}
	h.observe(200_000, 5000, 2000)
	h.observe(200_100, 1000, 2000)
	for _, tc := range []struct {
		after time.Duration
		want  bool
	}{{time.Millisecond, true}, {pauseMemory, false}} {
		var b epoch.Builder
		if err := b.Reset(epoch.Header{EpochLength: 1}, 1400, 1); err != nil {
			t.Fatal(err)
		}
		empty := b.Finish()
		before := len(b.Chunk(empty - 1))
		if err := b.Reset(epoch.Header{EpochLength: 1}, 1400, 1); err != nil {
			t.Fatal(err)
		}
		h.report(&b, model.Time(200_100).Add(tc.after), epoch.BacklogHistory{})
		if got := len(b.Chunk(b.Finish()-1)) > before; got != tc.want {
			t.Errorf("%v after it was quiet: reported %v; want %v", tc.after, got, tc.want)
		}
	}
}

func TestHistoryAllocatesNothing(t *testing.T) {
	h := backlogHistory{memory: pauseMemory}
	list := anyBacklogs(rand.New(rand.NewPCG(1, 3)), 20)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		h.observe(list[i%len(list)].at, list[i%len(list)].bytes, 2000)
		i++
	}); n != 0 {
		t.Errorf("observe allocates %v times", n)
	}
}
