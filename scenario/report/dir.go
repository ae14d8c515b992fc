package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WriteDir writes every output into a folder, which it creates if needed:
// fct.txt, pfc.txt, qlen.txt, trace.json, flows.csv, ports.csv, pauses.csv, summary.txt, summary.json and
// report.html. Files of these names are replaced.
func (r *Run) WriteDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	s := r.Summarize()
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"fct.txt", r.WriteFCT},
		{"pfc.txt", r.WritePFC},
		{"qlen.txt", r.WriteQueueLengths},
		{"trace.json", r.WritePerfetto},
		{"flows.csv", r.WriteFlowsCSV},
		{"ports.csv", r.WritePortsCSV},
		{"pauses.csv", r.WritePausesCSV},
		{"summary.txt", func(w io.Writer) error { return errors.Join(r.writeFindings(w), s.WriteText(w)) }},
		{"summary.json", s.WriteJSON},
		{"report.html", r.WriteHTML},
	} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

// writeFindings writes the verdict and the diagnoses, which come before the figures.
func (r *Run) writeFindings(w io.Writer) error {
	var b strings.Builder
	if r.Verdict != "" {
		fmt.Fprintf(&b, "verdict: %s\n", r.Verdict)
	}
	for _, e := range r.Expected {
		if !e.Pass {
			fmt.Fprintf(&b, "- %s: want %s, got %s\n", e.What, e.Want, e.Got)
		}
	}
	if len(r.Diagnoses) > 0 {
		b.WriteString("diagnoses\n")
	}
	for _, d := range r.Diagnoses {
		fmt.Fprintf(&b, "- %s\n", d)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
