package attribution

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// eachDrawing calls f with all drawings.
func eachDrawing(t *testing.T, f func(t *testing.T, d *drawing)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d drawings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			drawn, _, _ := strings.Cut(string(text), "-- account --")
			d, err := parseDrawing(drawn)
			if err != nil {
				t.Fatal(err)
			}
			f(t, d)
		})
	}
}

// TestShiftedClock: a cause that leads by more than two columns stays the top
// cause when the clock of a switch is off by up to half a column.
func TestShiftedClock(t *testing.T) {
	eachDrawing(t, func(t *testing.T, d *drawing) {
		limit := d.column / 2
		for i := range d.evidence.Devices {
			d.evidence.Devices[i].ClockError = max(d.evidence.Devices[i].ClockError, limit)
		}
		a := Attribute(&d.evidence, &d.victim)
		top := a.TopCause()
		for i := range a.Terms {
			if o := &a.Terms[i]; o != top && (top == nil || o.Kind != Unexplained && top.Time-o.Time <= 2*d.column) {
				return
			}
		}
		for n := range d.evidence.Devices {
			for _, shift := range []time.Duration{-limit, -limit / 2, limit / 2, limit} {
				shifted := d.evidence.clone()
				shifted.eachTime(func(q *QueueRecord) bool { return int(q.Queue.Port.Node) == n }, func(x model.Time) model.Time { return x.Add(shift) })
				shifted.Devices[n].Snapshot = shifted.Devices[n].Snapshot.Add(shift)
				if b := Attribute(shifted, &d.victim); nameOf(b.TopCause()) != nameOf(top) {
					t.Errorf("clock of %s shifted by %v: %s\nwithout: %s", d.nodeNames[n], shift, b.Sentence(d), a.Sentence(d))
				}
			}
		}
	})
}

// TestDrawnLostReports: without a report, on the path or off it, no more is
// explained than with it, and nothing at the places it is about.
func TestDrawnLostReports(t *testing.T) {
	eachDrawing(t, func(t *testing.T, d *drawing) {
		a := Attribute(&d.evidence, &d.victim)
		for n := range d.evidence.Devices {
			less := d.evidence.clone()
			less.Devices[n].Reported = false
			b := Attribute(less, &d.victim)
			if b.Explained() > a.Explained()+d.column/2 {
				t.Errorf("without the report of %s: %s\nwith it: %s", d.nodeNames[n], b.Sentence(d), a.Sentence(d))
			}
			for i := range b.Terms {
				if p := b.Terms[i].Place; p != nil && b.Terms[i].Kind != Unexplained && int(p.Port.Node) == n {
					t.Errorf("without the report of %s: %s", d.nodeNames[n], b.Sentence(d))
				}
			}
		}
	})
}
