package repro

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Conditions are what outcomes depend on, beside the claim.
type Conditions struct {
	Seed  uint64 `json:"seed"`
	Quick bool   `json:"quick"`
	Build string `json:"build"` // of the program
}

// Journal keeps the outcomes of a run in a file, so that an interrupted run can be
// continued. Each line is one outcome, in JSON.
type Journal struct {
	under Conditions
	file  *os.File
	known map[string]Outcome
}

type journalLine struct {
	Conditions
	Outcome Outcome `json:"outcome"`
}

// OpenJournal opens a file, or creates it, and reads the outcomes that it has under
// the same conditions. A last line that is not complete is removed: the run was
// interrupted while it wrote it.
func OpenJournal(path string, under Conditions) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	j := &Journal{under: under, file: f, known: map[string]Outcome{}}
	end, err := j.read()
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// read returns where the last complete line ends.
func (j *Journal) read() (end int64, err error) {
	r := bufio.NewReader(j.file)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return end, err
		}
		var l journalLine
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return end, fmt.Errorf("line %d is no outcome of a claim (%w), want a file that --resume has written", n, err)
		}
		end += int64(len(line))
		if l.Conditions == j.under {
			j.known[l.Outcome.ID] = l.Outcome
		}
	}
}

// Outcome returns the outcome of a claim, if there is one under the same conditions.
func (j *Journal) Outcome(id string) (Outcome, bool) {
	o, ok := j.known[id]
	return o, ok
}

// Add appends an outcome.
func (j *Journal) Add(o Outcome) error {
	line, err := json.Marshal(journalLine{j.under, o})
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
