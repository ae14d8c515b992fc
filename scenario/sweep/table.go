package sweep

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

// Row is the outcome of one run.
type Row struct {
	Seed    uint64
	Verdict string
	Figures []float64 // by Figures(); NaN: the run does not have it
}

// file is the CSV file of a sweep.
type file struct {
	f        *os.File
	w        *csv.Writer
	settings string
}

// head is the first line of a file. Settings are part of a row, so that files of
// several sweeps can be joined.
func head(figures []string) []string {
	return append([]string{"settings", "seed", "verdict"}, figures...)
}

// openFile opens a CSV file, and reads the runs that it has. Those of other settings are
// kept and not read. A last line that was not written to its end is cut off.
func openFile(path, settings string, figures []string) (*file, []Row, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, nil, err
	}
	rows, end, err := readRows(f, path, settings, figures)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	out := &file{f: f, w: csv.NewWriter(f), settings: settings}
	if end == 0 {
		err = out.write(head(figures))
	}
	return out, rows, err
}

// readRows returns the rows of a file, and where the last whole line ends.
func readRows(f *os.File, path, settings string, figures []string) (rows []Row, end int64, err error) {
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, err
	}
	end = int64(bytes.LastIndexByte(data, '\n') + 1)
	r := csv.NewReader(bytes.NewReader(data[:end]))
	for n := 1; ; n++ {
		cells, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows, end, nil
		case err != nil:
			return nil, 0, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 1 && !slices.Equal(cells, head(figures)):
			return nil, 0, fmt.Errorf("%s is not a file of this version's sweeps: its first line is %.60q…; want another file", path, cells)
		case n == 1 || cells[0] != settings:
			continue
		}
		row := Row{Verdict: cells[2]}
		if row.Seed, err = strconv.ParseUint(cells[1], 10, 64); err != nil {
			return nil, 0, fmt.Errorf("%s:%d: seed %q, want a number", path, n, cells[1])
		}
		for _, text := range cells[3:] {
			v, err := parseFigure(text)
			if err != nil {
				return nil, 0, fmt.Errorf("%s:%d: %q, want a number", path, n, text)
			}
			row.Figures = append(row.Figures, v)
		}
		rows = append(rows, row)
	}
}

// add appends a run, and has it reach the file.
func (f *file) add(r *Row) error {
	cells := []string{f.settings, strconv.FormatUint(r.Seed, 10), r.Verdict}
	for _, v := range r.Figures {
		cells = append(cells, formatFigure(v))
	}
	return f.write(cells)
}

func (f *file) write(cells []string) error {
	err := f.w.Write(cells)
	f.w.Flush()
	return errors.Join(err, f.w.Error())
}

func (f *file) close() error { return f.f.Close() }
