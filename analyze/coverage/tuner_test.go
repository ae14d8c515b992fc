package coverage

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// TestTunerMakesUpForLoss simulates a port whose labels are lost at some rate, and
// commands that are lost as well: the port is labelled often enough again.
func TestTunerMakesUpForLoss(t *testing.T) {
	const interval = 50 * time.Millisecond
	p := model.Port{Node: 4, Port: 1}
	for _, loss := range []float64{0, 0.6, 0.9} {
		tuner, err := NewTuner(DefaultTunerConfig(interval))
		if err != nil {
			t.Fatal(err)
		}
		aging, err := NewAgingDatabase(DefaultTunerConfig(interval))
		if err != nil {
			t.Fatal(err)
		}
		testMakesUpForLoss(t, interval, p, loss, tuner)
		testMakesUpForLoss(t, interval, p, loss, aging)
	}
}

// stepper is a Tuner or an AgingDatabase.
type stepper interface {
	Step(now model.Time, b *PortStates, active []model.Port) []IntervalCommand
}

func testMakesUpForLoss(t *testing.T, interval time.Duration, p model.Port, loss float64, tuner stepper) {
	t.Helper()
	b, _ := newBoard(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var last, labelled model.Time
	var shift, highest uint8
	late := 0
	for now := model.Time(0); now < model.Time(60*time.Second); now = now.Add(time.Millisecond) {
		if now.Sub(last) > interval>>shift { // the switch
			last = now
			if rng.Float64() >= loss {
				_ = b.IngestReport(now, export(false, label.Item{Switch: 4, Egress: 1, Time: now}))
				labelled = now
			}
		}
		for _, c := range tuner.Step(now, b, []model.Port{p}) {
			if c.Port != p {
				t.Fatalf("command %+v; want one for %v", c, p)
			}
			if rng.Float64() >= 0.3 {
				shift = c.Shift
			}
		}
		highest = max(highest, shift)
		if now.Sub(labelled) > 4*interval {
			late++
		}
	}
	if loss == 0 && (highest != 0 || late != 0) {
		t.Errorf("no loss: shift rose to %d, %d ms without news; want neither", highest, late)
	}
	if loss > 0 && highest == 0 {
		t.Errorf("loss %v: the shift never rose", loss)
	}
	if share := float64(late) / 60000; share > 0.05 {
		t.Errorf("loss %v: no news for four intervals in %.1f %% of the time; want at most 5 %%", loss, 100*share)
	}
}

func TestTunerRepeatsSettingsAndReturnsToZero(t *testing.T) {
	const interval = 10 * time.Millisecond
	b, _ := newBoard(t)
	tuner, _ := NewTuner(DefaultTunerConfig(interval))
	p := []model.Port{{Node: 4, Port: 1}}
	step := func(n int) []IntervalCommand { return tuner.Step(model.Time(n)*model.Time(20*time.Millisecond), b, p) }
	step(0)
	for n := 1; n <= 3; n++ {
		if c := step(n); len(c) != 1 || c[0].Shift != uint8(n) {
			t.Fatalf("period %d of silence: %v; want shift %d", n, c, n)
		}
	}
	sent, zeros := 0, 0
	for n := 4; n < 40; n++ { // news again
		_ = b.IngestReport(model.Time(n)*model.Time(20*time.Millisecond), export(false, label.Item{Switch: 4, Egress: 1, Time: model.Time(n)}))
		for _, c := range step(n) {
			sent++
			if c.Shift == 0 {
				zeros++
			}
		}
	}
	if zeros != 3 || sent != 3*4-1+zeros {
		t.Errorf("%d commands, %d of them to 0; want each shift sent in all of its periods, 0 three times", sent, zeros)
	}
}

// TestTheoryAgreesWithDice compares the closed forms with packets that throw
// dice at every switch.
func TestTheoryAgreesWithDice(t *testing.T) {
	linear := func(i int) float64 { return math.Min(float64(i)/4, 1) }
	none := func(int) float64 { return 0 }
	rng := rand.New(rand.NewPCG(3, 4))
	for _, k := range []int{4, 8, 16} {
		for _, r := range []float64{0.05, 0.5} {
			for name, f := range map[string]func(int) float64{"A": none, "B": linear} {
				hops := HopDistribution(k)
				if sum := hops[1] + hops[3] + hops[5]; math.Abs(sum-1) > 1e-12 {
					t.Fatalf("Hops(%d) sum to %v; want 1", k, sum)
				}
				const trials = 30000
				var count [6]float64
				for range trials {
					n, labels := 5, 0
					if u := rng.Float64(); u < hops[1] {
						n = 1
					} else if u < hops[1]+hops[3] {
						n = 3
					}
					for range n {
						if x := f(labels); rng.Float64() < x || rng.Float64() < r {
							labels++
						}
					}
					count[labels] += 1.0 / trials
				}
				want := BaseB(k, r, f)
				if name == "A" {
					want = BaseA(k, r)
				}
				for i := range want {
					if tol := 6*math.Sqrt(want[i]*(1-want[i])/trials) + 1e-9; math.Abs(count[i]-want[i]) > tol {
						t.Errorf("Base %s, k=%d, r=%v: %d labels with probability %.4f; dice say %.4f", name, k, r, i, want[i], count[i])
					}
				}
				if mean := r * (hops[1] + 3*hops[3] + 5*hops[5]); name == "A" && math.Abs(Mean(want)-mean) > 1e-12 {
					t.Errorf("mean labels of Base A %v; want %v", Mean(want), mean)
				}
			}
		}
	}
}

func TestChanceAgreesWithNormalDelays(t *testing.T) {
	const ms = time.Millisecond
	rng := rand.New(rand.NewPCG(5, 6))
	for _, tc := range [][4]time.Duration{{50 * ms, ms, 100 * ms, 20 * ms}, {100 * ms, ms, 100 * ms, 10 * ms}, {90 * ms, 0, 100 * ms, 5 * ms}} {
		n := 0
		const trials = 30000
		for range trials {
			t1, t2 := rng.NormFloat64()*float64(tc[3]), rng.NormFloat64()*float64(tc[3])
			if float64(tc[0]+tc[1])+t2-t1 <= float64(tc[2]) {
				n++
			}
		}
		got, want := float64(n)/trials, CoverageProbability(tc[0], tc[1], tc[2], tc[3])
		if tol := 6 * math.Sqrt(want*(1-want)/trials); math.Abs(got-want) > tol {
			t.Errorf("Chance(%v) = %.3f; dice say %.3f", tc, want, got)
		}
	}
	if c := CoverageProbability(100*ms, ms, 100*ms, ms); c >= 0.5 {
		t.Errorf("Chance with T equal to the window = %v; want below 0.5, as section 4.2 says", c)
	}
}
