package routeview

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// TestNewBoardLearnsAll: a board that begins later has all rows after some rounds, and rows that
// differ for good after one.
func TestNewBoardLearnsAll(t *testing.T) {
	l := newLab(t)
	for _, sw := range []string{"tor0", "tor1", "leaf0"} {
		l.connect(sw)
	}
	l.announce("leaf0", "tor1", "h0", 1)
	l.drifts(time.Minute)
	old := l.board
	l.board = NewBoard(l.fabric)
	want := "other-next-hop: leaf0 has a route (10.0.0.2/32) to h0 by tor1, intended: by tor0"
	l.want("after one round", 0, want)
	for range refreshRounds {
		l.compare()
	}
	for _, sw := range l.fabric.Switches() {
		if diff := cmp.Diff(old.Rows(sw), l.board.Rows(sw), cmp.Comparer(func(a, b Row) bool {
			return cmp.Equal(a.NextHops, b.NextHops) && a.Prefix == b.Prefix && a.Kind == b.Kind
		})); diff != "" {
			t.Errorf("rows of %s: %s", l.fabric.Node(sw).Name, diff)
		}
	}
	if len(l.board.Rows(l.node("tor1").ID)) == 0 {
		t.Error("no rows of tor1, which has not changed; want all")
	}
}

// TestRowsOfABoardStay: those that a board has are not changed as differences last.
func TestRowsOfABoardStay(t *testing.T) {
	l := newLab(t)
	l.connect("tor0")
	l.withdraw("tor0", "leaf0", "h4")
	var before []Row
	l.view.Compare(l.now, l.routes)
	l.view.Tables(func(one *Table) { before = one.Rows })
	if l.now += model.Time(time.Minute); before[0].Settled {
		t.Fatal("the difference has lasted at once; want later")
	}
	l.view.Compare(l.now, l.routes)
	if before[0].Settled {
		t.Error("rows of a table before have changed")
	}
	l.view.Tables(func(one *Table) {
		if !one.HasRows || !one.Rows[0].Settled {
			t.Errorf("%+v after a minute; want rows, the first of which has lasted", one)
		}
	})
}

// TestBoardRefuses: tables of another fabric are refused, with what is wrong.
func TestBoardRefuses(t *testing.T) {
	l := newLab(t)
	tor, host, far := l.node("tor0").ID, l.node("h4").ID, l.node("spine0").ID
	for want, table := range map[string]Table{
		"no switch":        {Switch: host},
		"node 9999":        {Switch: 9999},
		"no neighbour":     {Switch: tor, HasRows: true, Rows: []Row{{Switch: tor, NextHops: []model.NodeID{far}, Hosts: []model.NodeID{host}, NumHosts: 1}}},
		"0 of 1 hosts":     {Switch: tor, HasRows: true, Rows: []Row{{Switch: tor, NumHosts: 1}}},
		"kind 200":         {Switch: tor, HasRows: true, Rows: []Row{{Switch: tor, Kind: 200, Hosts: []model.NodeID{host}, NumHosts: 1}}},
		"the fabric lacks": {Switch: tor, HasRows: true, Rows: []Row{{Switch: tor, Hosts: []model.NodeID{12345}, NumHosts: 1}}},
		"; want hosts":     {Switch: tor, HasRows: true, Rows: []Row{{Switch: tor + 1, Hosts: []model.NodeID{host}, NumHosts: 1}}},
	} {
		if err := l.board.Set(&table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Set(%+v) = %v; want an error with %q", table, err, want)
		}
	}
	if rows := l.board.Rows(tor); rows != nil {
		t.Errorf("rows %+v after all were refused; want none", rows)
	}
}

// FuzzTable reads anything; what is read is written back the same, and a board takes or refuses it.
func FuzzTable(f *testing.F) {
	l := newLab(f)
	l.connect("tor0")
	l.withdraw("tor0", "leaf0", "h4")
	l.view.Compare(l.now, l.routes)
	l.view.Tables(func(t *Table) {
		c := fieldcodec.NewWriter(nil)
		t.Code(c)
		f.Add(c.Written())
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		var table, again Table
		r := fieldcodec.NewReader(data)
		if table.Code(r); r.End() != nil {
			return
		}
		w := fieldcodec.NewWriter(nil)
		table.Code(w)
		r = fieldcodec.NewReader(w.Written())
		again.Code(r)
		w2 := fieldcodec.NewWriter(nil)
		again.Code(w2)
		if r.End() != nil || !bytes.Equal(w.Written(), w2.Written()) {
			t.Fatalf("%+v is written and read as %+v, %v", table, again, r.Err())
		}
		if l.board.Set(&table) == nil {
			l.board.Drifts(func(d *Drift) { _ = d.Text(l.fabric) })
		}
	})
}
