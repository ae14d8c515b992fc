package intlabel

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/label"
)

// pintPackets draws how many packets PINT needs until a path with a number of hops
// is known. Its digest has 16 bits. By a hash that all switches know, half of the
// packets carry the digest of one hop, each hop with equal probability (reservoir
// sampling); the others the XOR of hops that join with probability 1/√hops each,
// the best for PINT of those tried. A digest of one unknown hop reveals it, also
// after known ones are removed from an XOR. 16 bits are assumed to identify a
// switch uniquely, which favours PINT too.
func pintPackets(rng *rand.Rand, hops int) (packets int) {
	known := make([]bool, hops)
	left := hops
	join := 1 / math.Sqrt(float64(hops))
	var waiting [][]int // unknown hops of each XOR
	for left > 0 {
		packets++
		var of []int
		if rng.IntN(2) == 0 {
			of = []int{rng.IntN(hops)}
		} else {
			for h := range hops {
				if rng.Float64() < join {
					of = append(of, h)
				}
			}
		}
		waiting = append(waiting, of)
		left = revealHops(waiting, known, left)
	}
	return packets
}

// revealHops reveals hops until no digest holds a single unknown one.
func revealHops(waiting [][]int, known []bool, left int) int {
	for again := true; again; {
		again = false
		for i, of := range waiting {
			var unknown []int
			for _, h := range of {
				if !known[h] {
					unknown = append(unknown, h)
				}
			}
			waiting[i] = unknown
			if len(unknown) == 1 {
				known[unknown[0]], again = true, true
				left--
			}
		}
	}
	return left
}

var traceHops = []int{2, 5, 10, 15, 20, 25}

// meanPINTPackets returns the mean number of packets that PINT needs, by traceHops.
func meanPINTPackets(o claim.Options) (mean []float64) {
	trials := o.Pick(10_000, 1000)
	for _, hops := range traceHops {
		rng, sum := claim.Rand(o.Seed, uint64(hops)), 0
		for range trials {
			sum += pintPackets(rng, hops)
		}
		mean = append(mean, float64(sum)/float64(trials))
	}
	return mean
}

const traceNote = "PINT: 16 bits per packet, half of the packets name one random hop, half the XOR of some; decoded by peeling, mean of many trials. INT: a separate probe, 42 bytes of headers"

var tracePackets = claim.Claim{
	ID: "int-label-trace-packets", Where: "section 6.2, figure 22(a)",
	Says:      "one packet shows the whole path of a flow with INT-label and INT; PINT needs more packets for longer paths",
	Published: "1 packet; PINT grows with the path",
	Mutations: []claim.Mutation{follow},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		mean := meanPINTPackets(o)
		followed, err := followedPackets(ctx, o)
		if err != nil {
			return claim.Result{}, err
		}
		res := claim.Result{
			Pass:  followed == 1,
			Notes: []string{traceNote, "INT-label: a followed flow of one packet in the simulator; passes when its one export holds all 5 hops"},
		}
		t := claim.Table{Title: "packets until the path is known", Header: []string{"hops", "INT-label", "INT", "PINT"}}
		c := plot.Chart{
			Title: "packets until the path is known", XTitle: "hops", YTitle: "packets",
			Series: []plot.Series{{Name: "INT-label, INT"}, {Name: "PINT"}},
		}
		for i, h := range traceHops {
			t.Row(fmt.Sprint(h), "1", "1", fmt.Sprintf("%.1f", mean[i]))
			c.Series[0].X, c.Series[0].Y = append(c.Series[0].X, float64(h)), append(c.Series[0].Y, 1)
			c.Series[1].X, c.Series[1].Y = append(c.Series[1].X, float64(h)), append(c.Series[1].Y, mean[i])
			res.Pass = res.Pass && mean[i] > 1 && (i == 0 || mean[i] > mean[i-1])
		}
		res.Measured = fmt.Sprintf("%d packet for 5 hops; PINT %.1f for 5, %.1f for 25", followed, mean[1],
			mean[len(mean)-1])
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: c}}
		return res, nil
	},
}

var traceBits = claim.Claim{
	ID: "int-label-trace-bits", Where: "section 6.2, figure 22(b)",
	Says:      "INT-label needs the fewest extra bits to learn a flow's path, fewer than PINT and INT",
	Published: "INT-label fewest",
	Mutations: []claim.Mutation{compact},
	Run: func(_ context.Context, o claim.Options) (claim.Result, error) {
		mean := meanPINTPackets(o)
		res := claim.Result{Pass: true, Notes: []string{
			traceNote,
			"INT-label and INT with Weft's labels, which hold queue depths, times and utilisation beside the switch: 32 bytes per hop; the last column is for labels with a switch number only (16 bits, and 16 bits of option)",
			"passes when INT-label with its real labels is below both at every length",
		}}
		names := []string{"INT-label", "INT", "PINT", "INT-label, switch numbers only"}
		t := claim.Table{Title: "extra bits", Header: append([]string{"hops"}, names...)}
		c := plot.Chart{Title: "extra bits until the path is known", XTitle: "hops", YTitle: "bits", LogY: true}
		for _, n := range names {
			c.Series = append(c.Series, plot.Series{Name: n})
		}
		below := true
		for i, h := range traceHops {
			own := float64(8 * (wire.OptionSize + wire.ItemSize*h))
			if o.Without(compact) {
				own += float64(8 * frame * h)
			}
			bits := []float64{own, own + 8*frame, 16 * mean[i], float64(16 + 16*h)}
			row := []string{fmt.Sprint(h)}
			for j, b := range bits {
				row = append(row, fmt.Sprintf("%.0f", b))
				c.Series[j].X, c.Series[j].Y = append(c.Series[j].X, float64(h)), append(c.Series[j].Y, b)
			}
			t.Row(row...)
			res.Pass = res.Pass && bits[0] < bits[1] && bits[0] < bits[2]
			below = below && bits[3] < bits[2]
			if h == 5 {
				res.Measured = fmt.Sprintf("5 hops: INT-label %.0f, INT %.0f, PINT %.0f, switch numbers only %.0f",
					bits[0], bits[1], bits[2], bits[3])
			}
		}
		res.Notes = append(res.Notes, "with switch numbers only INT-label is below PINT at every length: "+yesOrNo(below))
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: c}}
		return res, nil
	},
}
