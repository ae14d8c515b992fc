package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
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
	return t.printOn(w, screenOf(w), func(string) string { return "" })
}

// printOn prints the table on a screen: columns fit its width, and lines are coloured
// by their severity.
func (t *table) printOn(w io.Writer, s screen, severity func(line string) string) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, columnGap, ' ', 0)
	widths := t.columnWidths(s.width)
	for _, row := range t.rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, screen{width: widths[i]}.fit(cell))
		}
		fmt.Fprintln(tw)
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

const (
	columnGap = 2
	minColumn = 8 // that a column is not narrowed below, even if its title is shorter
)

// columnWidths returns the widths that columns may have on a screen: the widest are
// narrowed until a line fits, but not below their title. A screen of width 0 takes all.
func (t *table) columnWidths(screen int) (widths []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; screen > 0 && total > screen; total-- {
		widest := -1
		for i, title := range t.rows[0] {
			if widths[i] > max(minColumn, utf8.RuneCountInString(title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
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
