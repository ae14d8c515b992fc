package hawkeye

import (
	"encoding/json"
	"testing"
)

// What a trace scored is the same after an interruption.
func TestTallySurvivesJSON(t *testing.T) {
	want, got := tally{requests: 7, answered: 5, right: 4}, tally{}
	b, err := json.Marshal(want)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if got != want || err != nil {
		t.Errorf("%s = %+v, %v; want %+v", b, got, err, want)
	}
}
