package repro

import (
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Measurement is the outcomes of a run, and what they depend on.
type Measurement struct {
	Conditions
	Machine string
	When    time.Time
	Claims  []Outcome
}

// Passed is how many claims hold.
func (m *Measurement) Passed() (n int) {
	for i := range m.Claims {
		if m.Claims[i].Pass {
			n++
		}
	}
	return n
}

// Verdict is PASS or FAIL, or ERROR if nothing was measured.
func (r *Outcome) Verdict() string {
	switch {
	case r.Pass:
		return "PASS"
	case r.Error != "":
		return "ERROR"
	}
	return "FAIL"
}

// WritePage writes index.html to the folder with the plots of a run: every claim with what
// was published and measured, its tables and its plots.
func (m *Measurement) WritePage(dir string) (err error) {
	type shown struct {
		*Outcome
		Images []string
	}
	data := struct {
		*Measurement
		Claims []shown
		Style  template.CSS
	}{Measurement: m, Style: template.CSS(plot.Style)}
	for i := range m.Claims {
		s := shown{Outcome: &m.Claims[i]}
		for _, file := range s.Plots {
			// An outcome of an earlier run may have its plots elsewhere.
			name := filepath.Base(file)
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				s.Images = append(s.Images, name)
			}
		}
		data.Claims = append(data.Claims, s)
	}
	f, err := os.Create(filepath.Join(dir, "index.html"))
	if err != nil {
		return fmt.Errorf("page of claims: %w", err)
	}
	if err = page.Execute(f, data); err == nil {
		err = f.Close()
	} else {
		_ = f.Close()
	}
	if err != nil {
		return fmt.Errorf("page of claims: %w", err)
	}
	return nil
}
