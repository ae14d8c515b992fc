package hawkeye

import (
	"encoding/json"

	"github.com/weft-telemetry/weft/analyze/anomaly"
)

// tally counts diagnosis requests: one request, one answer. The answer is the
// first verdict, the heaviest.
type tally struct {
	requests int
	answered int // with a verdict that names a root cause
	right    int // of those
}

// score judges the answers to a list of requests. What has no exact account, since
// its packet was lost or no packet made it, cannot be right.
func (r *run) score(list []diagnosis) (t tally) {
	for i := range list {
		t.requests++
		v := list[i].answer()
		if v == nil {
			continue
		}
		t.answered++
		if a := list[i].account; a != nil {
			truth := r.truthOf(a)
			if r.isRight(&truth, nanoseconds(a.Late), v) {
				t.right++
			}
		}
	}
	return t
}

func (t *tally) add(o tally) {
	t.requests += o.requests
	t.answered += o.answered
	t.right += o.right
}

// MarshalJSON and UnmarshalJSON let a tally be kept while a claim is interrupted.
func (t tally) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]int{t.requests, t.answered, t.right})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *tally) UnmarshalJSON(b []byte) error {
	var counts [3]int
	err := json.Unmarshal(b, &counts)
	*t = tally{counts[0], counts[1], counts[2]}
	return err
}

// precision returns the share of the answers that are right.
func (t *tally) precision() float64 { return share(t.right, t.answered) }

// recall returns the share of the requests that got a right answer.
func (t *tally) recall() float64 { return share(t.right, t.requests) }

// share returns a part of all; 0 of nothing, which is no success.
func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// namesCause reports whether a verdict answers a request.
func namesCause(what anomaly.Type, cause anomaly.RootCause) bool {
	return what != anomaly.None && cause != anomaly.NoRootCause
}
