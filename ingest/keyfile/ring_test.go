package keyfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRingKeepsItsKeysWhenTheFileIsBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	f := Generate([]string{"tor0"}, nil)
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rotate(nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(path); err != nil {
		t.Fatal(err)
	}
	before := r.Generation()
	if err := r.Reload(); err != nil || r.Keys("tor0")[0].ID != 2 || r.Generation() == before {
		t.Errorf("Reload = %v, then %v in generation %d; want the rotated keys in another than %d", err, r.Keys("tor0"), r.Generation(), before)
	}
	before = r.Generation()
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(); err == nil || len(r.Keys("tor0")) != 2 || r.Generation() != before || len(r.File().Names()) != 1 {
		t.Errorf("Reload of nonsense = %v, then %v; want an error and the keys of before", err, r.Keys("tor0"))
	}
	if _, err := Open(path); err == nil {
		t.Error("Open of nonsense = nil; want an error")
	}
}
