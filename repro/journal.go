package repro

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weft-telemetry/weft/repro/claim"
)

// Conditions are what outcomes depend on, beside the claim.
type Conditions struct {
	Seed  uint64 `json:"seed"`
	Quick bool   `json:"quick"`
	Build string `json:"build"` // of the program
}

// Journal keeps the outcomes of a run in a file, and what parts of long claims found,
// so that an interrupted run can be continued. Each line is one of them, in JSON.
type Journal struct {
	under Conditions
	known map[string]Outcome

	mu    sync.Mutex // guards what follows: claims measure parts on all cores
	file  *os.File
	parts map[partKey]json.RawMessage
}

type journalLine struct {
	Conditions
	Outcome *Outcome `json:"outcome,omitempty"` // or
	Part    *part    `json:"part,omitempty"`
}

type partKey struct {
	Claim string `json:"claim"`
	Key   string `json:"key"`
}

type part struct {
	partKey
	Found json.RawMessage `json:"found"`
}

// OpenJournal opens a file, or creates it, and reads the outcomes that it has under
// the same conditions. A last line that is not complete is removed: the run was
// interrupted while it wrote it.
func OpenJournal(path string, under Conditions) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	j := &Journal{under: under, file: f, known: map[string]Outcome{}, parts: map[partKey]json.RawMessage{}}
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
		err = d.Decode(&l)
		if err == nil && (l.Outcome == nil) == (l.Part == nil) {
			err = errors.New("want an outcome or a part")
		}
		if err != nil {
			return end, fmt.Errorf("line %d is no outcome of a claim (%w), want a file that --resume has written", n, err)
		}
		end += int64(len(line))
		switch {
		case l.Conditions != j.under:
		case l.Outcome != nil:
			j.known[l.Outcome.ID] = *l.Outcome
		default:
			j.parts[l.Part.partKey] = l.Part.Found
		}
	}
}

// Outcome returns the outcome of a claim, if there is one under the same conditions.
func (j *Journal) Outcome(id string) (Outcome, bool) {
	o, ok := j.known[id]
	return o, ok
}

// Add appends an outcome.
func (j *Journal) Add(o Outcome) error { return j.append(journalLine{Outcome: &o}) }

func (j *Journal) append(l journalLine) error {
	l.Conditions = j.under
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// Parts returns the parts of a claim.
func (j *Journal) Parts(id string) claim.Parts { return claimParts{j, id} }

// claimParts are the parts of one claim in a journal.
type claimParts struct {
	journal *Journal
	claim   string
}

// Part implements claim.Parts.
func (p claimParts) Part(key string, found any) (known bool, err error) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	kept, known := p.journal.parts[partKey{p.claim, key}]
	if known {
		err = json.Unmarshal(kept, found)
	}
	return known, err
}

// KeepPart implements claim.Parts.
func (p claimParts) KeepPart(key string, found any) error {
	b, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return p.journal.append(journalLine{Part: &part{partKey{p.claim, key}, b}})
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
