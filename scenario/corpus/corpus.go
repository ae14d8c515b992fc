// Package corpus scores answers of any tool about recorded incidents: which cause, where.
// The recordings are in examples/incidents, and the truth is in a file of its own.
package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
)

// Truth is what happened in each recording.
type Truth struct {
	Recordings []Recording `json:"recordings"`
}

// Recording is what was injected into the fabric of a recording.
type Recording struct {
	Name string `json:"name"` // of its directory
	// Sources are what switches sent: "weft", or "sflow" of switches on sale.
	Sources string `json:"sources"`
	Cause   string `json:"cause"` // empty: nothing was injected
	// Places are where it is; an answer needs one. A link has two ends, a loop several
	// switches.
	Places  []string `json:"places"`
	BeginMs int64    `json:"begin_ms"` // since the recording's first clock reading
	EndMs   int64    `json:"end_ms"`
}

// Answers are what a tool found.
type Answers struct {
	Tool    string   `json:"tool"`
	Answers []Answer `json:"answers"`
}

// Answer is one incident that a tool found in a recording. A tool that found nothing in
// it has none.
type Answer struct {
	Recording string `json:"recording"`
	Cause     string `json:"cause"`
	Place     string `json:"place"`
}

// maxFile bounds what is read: a truth of thousands of recordings is far smaller.
const maxFile = 16 << 20

// ReadTruth reads a truth file.
func ReadTruth(path string) (*Truth, error) {
	t := new(Truth)
	if err := readJSON(path, t); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, r := range t.Recordings {
		switch {
		case r.Name == "" || strings.ContainsAny(r.Name, `/\`) || seen[r.Name]:
			return nil, fmt.Errorf("%s: recording %d has the name %q, want one of its own, without slashes", path, i+1, r.Name)
		case r.Cause != "" && !knownCause(r.Cause):
			return nil, fmt.Errorf("%s: recording %s: cause %q, want %s", path, r.Name, r.Cause, causes())
		case (r.Cause == "") != (len(r.Places) == 0):
			return nil, fmt.Errorf("%s: recording %s: want a cause and places, or neither", path, r.Name)
		}
		seen[r.Name] = true
	}
	return t, nil
}

// ReadAnswers reads an answers file about the recordings of a truth.
func ReadAnswers(path string, t *Truth) (*Answers, error) {
	a := new(Answers)
	if err := readJSON(path, a); err != nil {
		return nil, err
	}
	for i, x := range a.Answers {
		switch {
		case !slices.ContainsFunc(t.Recordings, func(r Recording) bool { return r.Name == x.Recording }):
			return nil, fmt.Errorf("%s: answer %d is about recording %q, want one of the truth", path, i+1, x.Recording)
		case !knownCause(x.Cause):
			return nil, fmt.Errorf("%s: answer %d: cause %q, want %s", path, i+1, x.Cause, causes())
		}
	}
	return a, nil
}

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxFile {
		return fmt.Errorf("%s: more than %d bytes, want less", path, maxFile)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func knownCause(name string) bool { return slices.Contains(anomaly.CauseNames(), name) }

func causes() string { return "one of " + strings.Join(anomaly.CauseNames(), ", ") }
