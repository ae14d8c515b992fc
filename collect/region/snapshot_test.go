package region

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

func snapshot(t testing.TB) []byte {
	r := open(t, config(""))
	defer r.Close()
	_ = r.Write(100, []byte("kept"))
	r.WriterCounters(1).CountAdded(4, 44)
	var b bytes.Buffer
	if err := r.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRestoreEqualsSnapshot(t *testing.T) {
	snap := snapshot(t)
	r := open(t, config(filepath.Join(t.TempDir(), "r")))
	defer r.Close()
	if err := r.Restore(bytes.NewReader(snap)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _ = r.Read(100, got); string(got) != "kept" {
		t.Errorf("memory = %q; want kept", got)
	}
	if got := r.Counts(); got != (Counts{Writes: 4, Total: 44}) {
		t.Errorf("Counts = %+v; want 4 writes of 44 in all", got)
	}
}

// TestRestoreIsAllOrNothing flips bits and truncates at every relevant offset, and
// checks for an error and an empty region each time.
func TestRestoreIsAllOrNothing(t *testing.T) {
	snap := snapshot(t)
	for _, at := range []int{0, 8, 20, len(snapMagic) + kindAt, len(snapMagic) + cellsAt, len(snap) - 400, len(snap) - 1} {
		for name, bad := range map[string][]byte{"flipped": bytes.Clone(snap), "cut": snap[:at]} {
			if name == "flipped" {
				bad[at] ^= 1
			}
			r := open(t, config(""))
			_ = r.Write(0, []byte("old"))
			before := bytes.Clone(r.mem[HeaderSize:])
			err := r.Restore(bytes.NewReader(bad))
			if err == nil {
				t.Errorf("Restore of a snapshot %s at %d works", name, at)
			}
			if !bytes.Equal(r.mem[HeaderSize:], before) && !bytes.Equal(r.mem[HeaderSize:], make([]byte, 512)) {
				t.Errorf("Restore of a snapshot %s at %d leaves a mixture", name, at)
			}
			_ = r.Close()
		}
	}
	other := open(t, Config{Kind: "test", Geometry: geometry{65}, Size: 512})
	defer other.Close()
	if err := other.Restore(bytes.NewReader(snap)); !errors.Is(err, ErrMismatch) {
		t.Errorf("Restore into another geometry = %v; want ErrMismatch", err)
	}
}

// edit changes a valid image: a patch, a truncation, and optionally a recomputed
// header checksum, so that the code after it is reached.
func edit(image []byte, header int, at uint16, patch []byte, cut uint16, reseal bool) []byte {
	out := bytes.Clone(image)
	copy(out[int(at)%len(out):], patch)
	if reseal {
		binary.LittleEndian.PutUint32(out[header+sumAt:], crc32.Checksum(out[header+sizeAt:header+fixedEnd], castagnoli))
	}
	return out[:len(out)-int(cut)%len(out)]
}

func FuzzRestore(f *testing.F) {
	snap := snapshot(f)
	f.Add(uint16(0), []byte{}, uint16(0), false)
	f.Add(uint16(len(snapMagic)+sizeAt), []byte{0, 4}, uint16(0), true)
	f.Add(uint16(len(snapMagic)+geomAt), []byte{255, 255}, uint16(0), true)
	f.Add(uint16(len(snap)-1), []byte{7}, uint16(3), false)
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, cut uint16, reseal bool) {
		in := edit(snap, len(snapMagic), at, patch, cut, reseal)
		r := open(t, config(""))
		defer r.Close()
		if r.Restore(bytes.NewReader(in)) != nil {
			return
		}
		var out bytes.Buffer
		if err := r.Snapshot(&out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(in, out.Bytes()) {
			t.Fatalf("restored %x, kept %x", in, out.Bytes())
		}
	})
}

func FuzzView(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "seed")
	if err := open(f, config(path)).Close(); err != nil {
		f.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	f.Add(uint16(0), []byte{}, uint16(0), false)
	f.Add(uint16(sizeAt), []byte{0, 0, 0, 0, 0, 0, 0, 127}, uint16(0), true)
	f.Add(uint16(geomAt), []byte{255, 255}, uint16(0), true)
	f.Add(uint16(0), []byte{}, uint16(4096), false)
	name := filepath.Join(dir, "fuzz")
	f.Fuzz(func(t *testing.T, at uint16, patch []byte, cut uint16, reseal bool) {
		if err := os.WriteFile(name, edit(whole, 0, at, patch, cut, reseal), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := View(name)
		if err != nil {
			return
		}
		for i := range r.Words() { // every word is there
			Load(&r.Words()[i])
		}
		_ = r.Counts()
		_ = r.Close()
	})
}
