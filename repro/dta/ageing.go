package dta

import (
	"context"
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/keywrite"
)

// failures are shares of queries that failed.
type failures struct {
	empty, wrong float64
	queries      int
}

// failuresAtAge writes keys and queries each again when exactly age later ones
// were written, queries times.
func failuresAtAge(ctx context.Context, cfg keywrite.Config, n, age, queries int) (f failures, err error) {
	t, err := keywrite.Open("", cfg)
	if err != nil {
		return f, err
	}
	defer t.Region().Close()
	w := t.Writer(0)
	key, value, dst := make([]byte, 8), make([]byte, cfg.Value), make([]byte, 0, 4*cfg.Value+32)
	for i := range uint64(age + queries) {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return f, ctx.Err()
		}
		writeKey(w, key, value, i, n)
		if i < uint64(age) {
			continue
		}
		ok, found := readKey(t, dst, key, i-uint64(age), n)
		switch {
		case !found:
			f.empty++
		case !ok:
			f.wrong++
		}
	}
	f.queries = queries
	f.empty /= float64(queries)
	f.wrong /= float64(queries)
	return f, nil
}

// writeKey reports the i-th key. Its value is derived from i.
func writeKey(w *keywrite.Writer, key, value []byte, i uint64, n int) {
	binary.LittleEndian.PutUint64(key, i)
	binary.LittleEndian.PutUint32(value, valueOf(i))
	if err := w.Write(key, value, n); err != nil {
		panic(err) // keys, values and copies are all of the right size
	}
}

// readKey queries the i-th key, and reports whether there was an answer and
// whether it was correct.
func readKey(t *keywrite.Table, dst, key []byte, i uint64, n int) (ok, found bool) {
	binary.LittleEndian.PutUint64(key, i)
	a, err := t.Lookup(dst, key, keywrite.Query{Copies: n})
	if err != nil {
		panic(err)
	}
	if a.Outcome != keywrite.Found {
		return false, false
	}
	return binary.LittleEndian.Uint32(a.Value) == valueOf(i), true
}

func valueOf(i uint64) uint32 { return uint32(i*0x9e3779b97f4a7c15>>32) | 1 }
