package corpus

import "slices"

// Score is how right answers are.
type Score struct {
	Tool       string           `json:"tool"`
	Recordings []RecordingScore `json:"recordings"` // in the order of the truth
	Incidents  int              `json:"incidents"`  // injected
	Right      int              `json:"right"`      // of them: found, with cause and place
	Place      int              `json:"place"`      // of them: found at the place, with any cause
	Answers    int              `json:"answers"`
	Wrong      int              `json:"wrong"` // of the answers: not right
	Precision  float64          `json:"precision"`
	Recall     float64          `json:"recall"`
}

// RecordingScore is the part of a recording.
type RecordingScore struct {
	Recording
	Answers []Answer `json:"answers"`
	// Verdict is "right", "place only", "cause only", "missed", "invented" or, of a
	// recording without an incident that got no answer, "right".
	Verdict string `json:"verdict"`
}

// Judge compares answers with the truth. Of several answers with the right cause and
// place one is right, and the others are wrong: an operator gets an alert for each.
func Judge(t *Truth, a *Answers) *Score {
	s := &Score{Tool: a.Tool, Recordings: []RecordingScore{}, Answers: len(a.Answers)}
	for _, r := range t.Recordings {
		x := RecordingScore{Recording: r, Answers: []Answer{}}
		right, place, cause := false, false, false
		for _, answer := range a.Answers {
			if answer.Recording != r.Name {
				continue
			}
			x.Answers = append(x.Answers, answer)
			there := slices.Contains(r.Places, answer.Place)
			if there && answer.Cause == r.Cause && !right {
				right = true
			} else {
				s.Wrong++
			}
			place, cause = place || there, cause || r.Cause != "" && answer.Cause == r.Cause
		}
		if r.Cause != "" {
			s.Incidents++
		}
		switch {
		case r.Cause == "" && len(x.Answers) == 0:
			x.Verdict = "right"
		case r.Cause == "":
			x.Verdict = "invented"
		case right:
			x.Verdict = "right"
			s.Right++
		case place:
			x.Verdict = "place only"
		case cause:
			x.Verdict = "cause only"
		default:
			x.Verdict = "missed"
		}
		if r.Cause != "" && place {
			s.Place++
		}
		s.Recordings = append(s.Recordings, x)
	}
	s.Precision, s.Recall = share(s.Answers-s.Wrong, s.Answers), share(s.Right, s.Incidents)
	return s
}

// Perfect reports whether every incident was found, and nothing else.
func (s *Score) Perfect() bool { return s.Right == s.Incidents && s.Wrong == 0 }

// share returns a/b; of nothing all is right.
func share(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}
