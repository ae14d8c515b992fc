package parquet

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
)

// rows reads a Parquet file back, with the types of its columns.
func rows(t *testing.T, path string) (types []string, out [][]string) {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer connector.Close()
	db := sql.OpenDB(connector)
	defer db.Close()
	r, err := db.QueryContext(t.Context(), "SELECT * FROM read_parquet("+quote(path)+")")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	kinds, err := r.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		types = append(types, k.Name()+" "+k.DatabaseTypeName())
	}
	for r.Next() {
		cells := make([]any, len(kinds))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := r.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, c := range cells {
			row = append(row, fmt.Sprint(*c.(*any)))
		}
		out = append(out, row)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return types, out
}

func TestFromCSV(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(dir, "a.csv"), filepath.Join(dir, "a.parquet")
	text := "name,n,u,x,ok\n\"a, \"\"b\"\"\",-9223372036854775808,18446744073709551615,0.1,true\n,,,,\nc,1,2,1e-300,false\n"
	if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	columns := []Column{{"name", Text}, {"n", Integer}, {"u", Unsigned}, {"x", Real}, {"ok", Boolean}}
	if err := FromCSV(t.Context(), from, to, columns); err != nil {
		t.Fatal(err)
	}
	types, got := rows(t, to)
	if want := "[name VARCHAR n BIGINT u UBIGINT x DOUBLE ok BOOLEAN]"; fmt.Sprint(types) != want {
		t.Errorf("columns %v; want %s", types, want)
	}
	if want := `[[a, "b" -9223372036854775808 18446744073709551615 0.1 true] [<nil> <nil> <nil> <nil> <nil>] [c 1 2 1e-300 false]]`; fmt.Sprint(got) != want {
		t.Errorf("rows %v; want %s", got, want)
	}
	// A bad table leaves the file as it was, and nothing else.
	if err := os.WriteFile(from, []byte("name,n,u,x,ok\na,b,c,d,e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := FromCSV(t.Context(), from, to, columns); err == nil || !strings.Contains(err.Error(), from) {
		t.Errorf("FromCSV of a bad table = %v; want an error that names it", err)
	}
	if _, again := rows(t, to); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Errorf("rows %v after an error; want those of before", again)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := FromCSV(ended, from, to, columns); err == nil {
		t.Error("FromCSV of an ended context = nil; want an error")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".weft-*")); len(names) > 0 {
		t.Errorf("files %v are left; want none", names)
	}
}
