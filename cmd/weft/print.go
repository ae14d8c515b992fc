package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// printJSON writes one indented value; FlowKeys keep their ">".
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table prints rows in aligned columns. Lines have no trailing space, so the
// output diffs cleanly.
type table struct{ rows [][]string }

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(w io.Writer) error {
	return t.printOn(w, screen{}, func(string) string { return "" })
}

// printOn prints the table on a screen: lines are cut to its width, and coloured by
// their severity.
func (t *table) printOn(w io.Writer, s screen, severity func(line string) string) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		line = s.fit(strings.TrimRight(line, " \n"))
		if _, err := fmt.Fprintln(w, s.paint(line, severity(line))); err != nil {
			return err
		}
	}
	return nil
}

// checkWritable reports before a long run starts that its output file cannot be
// written.
func checkWritable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("--%s %s is a directory, want a file", flag, path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("--%s %s: %w", flag, path, err)
	} else if !info.IsDir() {
		return fmt.Errorf("--%s %s: %s is not a directory", flag, path, filepath.Dir(path))
	}
	return nil
}
