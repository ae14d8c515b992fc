package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// WriteDir writes every output into a folder, which it creates if needed:
// fct.txt, pfc.txt, flows.csv, ports.csv, summary.txt, summary.json and
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
		{"flows.csv", r.WriteFlowsCSV},
		{"ports.csv", r.WritePortsCSV},
		{"summary.txt", s.WriteText},
		{"summary.json", s.WriteJSON},
		{"report.html", r.WriteHTML},
	} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
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
