package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// repairConfig repairs, as the service does.
func repairConfig() embedded.Config {
	cfg := testConfig()
	cfg.Repair, cfg.Memory, cfg.CacheSize = true, 128*model.MiB, 64*model.KiB
	return cfg
}

// randomBatch has records of every kind that do not compress well.
func randomBatch(seed uint64, rows int) *record.Batch {
	r := newRand(seed)
	b := &record.Batch{}
	for i := range rows {
		at := base.Add(time.Duration(seed)*time.Hour + time.Duration(i)*time.Millisecond)
		key := model.FlowKey{Src: model.Addr4(r.Uint32()), Dst: model.Addr4(r.Uint32()), SrcPort: uint16(i), DstPort: 4791, Proto: model.UDP}
		b.Flows = append(b.Flows, record.FlowSlot{Time: at, Flow: key, Packets: r.Uint64(), Path: []record.FlowHop{{Switch: "e1", Packets: r.Uint64()}}})
		b.Ports = append(b.Ports, record.PortSample{Time: at, Node: "e1", Port: model.PortID(i % 8), Queue: model.Bytes(r.IntN(1 << 30)), Samples: 1})
		if i%4 == 0 {
			b.Losses = append(b.Losses, record.Loss{Time: at, Flow: key, From: "e1", To: "a1", Packets: r.Uint64()})
			b.Counters = append(b.Counters, record.Counter{Time: at, Name: "all", Packets: r.Uint64() >> 20})
		}
		if i%16 == 0 {
			b.Traces = append(b.Traces, record.Trace{Time: at, ID: r.Uint64(), Hops: []record.TraceHop{{Time: at, Switch: "e1", In: 1, Out: 2}}, Frame: []byte(fmt.Sprint(r.Uint64()))})
		}
		if i%64 == 0 {
			b.Diagnoses = append(b.Diagnoses, record.Diagnosis{Time: at, ID: fmt.Sprintf("d%d", int(seed)*rows+i), Body: []byte(fmt.Sprintf(`{"n":%d}`, r.Uint64()))})
			b.Incidents = append(b.Incidents, record.Incident{ID: fmt.Sprintf("i%d", int(seed)*rows+i), Begin: at, Updated: at, Summary: fmt.Sprint(r.Uint64())})
		}
	}
	return b
}

// originals are stores by their number of rows, made once: most tests damage a copy.
var originals struct {
	sync.Mutex
	files map[int][]byte
	rows  map[int]map[store.Kind]map[string]int
}

// original puts a store of some flows and other records into a directory, and returns
// its rows, which must not be changed.
func original(t *testing.T, dir string, rows int) (path string, all map[store.Kind]map[string]int) {
	t.Helper()
	path = filepath.Join(dir, "weft.duckdb")
	originals.Lock()
	defer originals.Unlock()
	if originals.files == nil {
		originals.files, originals.rows = map[int][]byte{}, map[int]map[store.Kind]map[string]int{}
	}
	if originals.files[rows] == nil {
		made := filepath.Join(t.TempDir(), "weft.duckdb")
		s := open(t, made, testConfig())
		mustAppend(t, s, randomBatch(0, rows))
		mustClose(t, s)
		b, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		originals.files[rows], originals.rows[rows] = b, tableRows(t, made)
	}
	if err := os.WriteFile(path, originals.files[rows], 0o600); err != nil {
		t.Fatal(err)
	}
	return path, originals.rows[rows]
}

// tableRows reads the rows of all tables as text, without their sequence numbers.
func tableRows(t *testing.T, path string) map[store.Kind]map[string]int {
	t.Helper()
	db := sqlOpen(t, path)
	defer db.Close()
	all := map[store.Kind]map[string]int{}
	for _, kind := range store.Kinds() {
		all[kind] = map[string]int{}
		columns := "* EXCLUDE (seq)"
		if strings.Contains(string(kind), "_1") {
			columns = "*"
		}
		rows, err := db.Query(fmt.Sprintf(`SELECT t::VARCHAR FROM (SELECT %s FROM %s) t`, columns, kind))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				t.Fatal(err)
			}
			all[kind][text]++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return all
}

// isPart compares salvaged rows with the original ones, and returns their number.
func isPart(t *testing.T, got, of map[store.Kind]map[string]int) (rows int) {
	t.Helper()
	for kind := range of {
		for text, n := range got[kind] {
			if n > of[kind][text] {
				t.Fatalf("%s has %d times %s; the original has it %d times", kind, n, text, of[kind][text])
			}
			rows += n
		}
	}
	return rows
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip changes 64 bytes of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64)
	n, _ := f.ReadAt(b, at)
	for i := range n {
		b[i] ^= 0x5a
	}
	if _, err := f.WriteAt(b[:n], at); err != nil {
		t.Fatal(err)
	}
}

func asideFiles(t *testing.T, path string) []string {
	t.Helper()
	list, err := filepath.Glob(path + ".damaged-*")
	if err != nil {
		t.Fatal(err)
	}
	return list
}
