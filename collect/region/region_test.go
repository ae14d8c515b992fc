package region

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type geometry struct {
	Slots int `json:"slots"`
}

func config(path string) Config {
	return Config{Path: path, Kind: "test", Geometry: geometry{64}, Size: 512}
}

func open(t interface {
	Helper()
	Fatal(...any)
}, cfg Config,
) *Region {
	t.Helper()
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWriteEqualsCopy compares Write, Read, FetchAdd and CompareSwap with a plain slice.
func TestWriteEqualsCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := open(t, config(""))
		defer r.Close()
		reference := make([]byte, r.Size())
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			off := rapid.Uint64Range(0, 520).Draw(t, "off")
			if kind := rapid.IntRange(0, 3).Draw(t, "kind"); kind < 2 {
				operand := rapid.Uint64().Draw(t, "operand")
				was, becomes := uint64(0), operand
				if off%8 == 0 && off < 512 {
					was = binary.LittleEndian.Uint64(reference[off:])
				}
				var old uint64
				var err error
				if kind == 0 {
					becomes += was
					old, err = r.FetchAdd(off, operand)
				} else {
					compare := rapid.SampledFrom([]uint64{was, was ^ 1}).Draw(t, "compare")
					if compare != was {
						becomes = was
					}
					old, err = r.CompareSwap(off, compare, operand)
				}
				name := []string{"FetchAdd", "CompareSwap"}[kind]
				switch {
				case off%8 != 0:
					if err != ErrAlign {
						t.Fatalf("%s(%d) = %v; want ErrAlign", name, off, err)
					}
				case off >= 512:
					if err != ErrBounds {
						t.Fatalf("%s(%d) = %v; want ErrBounds", name, off, err)
					}
				default:
					if old != was || err != nil {
						t.Fatalf("%s(%d) = %d, %v; want %d", name, off, old, err, was)
					}
					binary.LittleEndian.PutUint64(reference[off:], becomes)
				}
				continue
			}
			b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
			err := r.Write(off, b)
			if int(off)+len(b) > len(reference) {
				if err != ErrBounds {
					t.Fatalf("Write of %d at %d = %v; want ErrBounds", len(b), off, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			copy(reference[off:], b)
		}
		got := make([]byte, len(reference))
		if err := r.Read(0, got); err != nil || !bytes.Equal(got, reference) {
			t.Fatalf("memory\n%x, %v; want\n%x", got, err, reference)
		}
		if err := r.Write(^uint64(0), make([]byte, 8)); err != ErrBounds {
			t.Fatalf("Write at the end of all addresses = %v; want ErrBounds", err)
		}
	})
}

func TestFileAnswersAsBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	r := open(t, config(path))
	if err := r.Write(40, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	c := r.WriterCounters(3)
	c.CountAdded(2, 10)
	if err := r.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(config(path)); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Open = %v; want ErrLocked", err)
	}
	view, err := View(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(r *Region) {
		t.Helper()
		got := make([]byte, 4)
		if err := r.Read(40, got); err != nil || string(got) != "kept" {
			t.Errorf("Read = %q, %v; want kept", got, err)
		}
		if got := r.Counts(); got != (Counts{Writes: 2, Total: 10}) {
			t.Errorf("Counts = %+v; want 2 writes of 10 in all", got)
		}
	}
	check(view)
	if err := errors.Join(view.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	r = open(t, config(path))
	defer r.Close()
	check(r)
	if left, _ := filepath.Glob(path + ".new*"); len(left) != 0 {
		t.Errorf("files left behind: %v", left)
	}
}

// TestKilledWriterLosesNothing writes from a process that is killed without
// cleanup, and reads what it had written.
func TestKilledWriterLosesNothing(t *testing.T) {
	if path := os.Getenv("REGION_TEST_FILE"); path != "" {
		r := open(t, config(path))
		_ = r.Write(0, []byte("before the kill"))
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	}
	path := filepath.Join(t.TempDir(), "r")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriterLosesNothing$")
	cmd.Env = append(os.Environ(), "REGION_TEST_FILE="+path)
	if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended with %v; want it killed", err)
	}
	r := open(t, config(path))
	defer r.Close()
	got := make([]byte, 15)
	if _ = r.Read(0, got); string(got) != "before the kill" {
		t.Errorf("memory = %q; want what was written before the kill", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r")
	if err := open(t, config(path)).Close(); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(path)
	damaged := bytes.Clone(whole)
	damaged[kindAt]++
	next := bytes.Clone(whole)
	next[versAt] = 9
	for name, tc := range map[string]struct {
		file []byte
		cfg  Config
		want error
		text string
	}{
		"another kind":     {whole, Config{Kind: "other", Geometry: geometry{64}, Size: 512}, ErrMismatch, "holds test, want other"},
		"another geometry": {whole, Config{Kind: "test", Geometry: geometry{65}, Size: 512}, ErrMismatch, `{"slots":64}, want 512 bytes of {"slots":65}`},
		"another size":     {whole, Config{Kind: "test", Geometry: geometry{64}, Size: 520}, ErrMismatch, "holds 512 bytes"},
		"a text":           {[]byte("hello"), config(""), ErrForeign, ""},
		"another file":     {make([]byte, 8192), config(""), ErrForeign, ""},
		"a damaged header": {damaged, config(""), ErrDamaged, ""},
		"a later version":  {next, config(""), ErrMismatch, "version 9, want 1"},
		"a cut file":       {whole[:HeaderSize], config(""), ErrDamaged, "file of 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "r")
			if err := os.WriteFile(p, tc.file, 0o600); err != nil {
				t.Fatal(err)
			}
			tc.cfg.Path = p
			_, err := Open(tc.cfg)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), p) {
				t.Errorf("Open = %v; want %v with %q and the path", err, tc.want, tc.text)
			}
		})
	}
	for _, size := range []int64{0, -8, 12, 1 << 62} {
		if _, err := Open(Config{Kind: "test", Size: size}); err == nil {
			t.Errorf("Open of %d bytes works", size)
		}
	}
	if _, err := View(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("View of no file = %v; want ErrNotExist", err)
	}
}

func TestResetBeginsAnEpoch(t *testing.T) {
	r := open(t, config(""))
	defer r.Close()
	c := r.WriterCounters(0)
	c.CountAdded(3, 30)
	_ = r.Write(8, []byte("gone"))
	r.Reset()
	c.CountAdded(1, 5)
	if got := r.Counts(); got != (Counts{Writes: 1, Total: 5, Epoch: 1}) {
		t.Errorf("Counts after a reset = %+v; want one write of 5 in epoch 1", got)
	}
	for i, w := range r.Words() {
		if w != 0 {
			t.Fatalf("word %d = %x after a reset; want 0", i, w)
		}
	}
}

func TestHugePageBytes(t *testing.T) {
	const smaps = `7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
VmFlags: rd wr
7f0000400000-7f0000600000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
7f0000700000-7f0000900000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
`
	got, err := hugeBytesIn(strings.NewReader(smaps), 0x7f0000000000, 0x7f0000600000)
	if err != nil || got != 4<<20 {
		t.Errorf("hugeBytesIn = %d, %v; want 4 MiB of the two mappings within", got, err)
	}
	r := open(t, Config{Kind: "test", Size: 8 << 20})
	defer r.Close()
	r.Prefault()
	if got, err := r.HugePageBytes(); err != nil || got < 0 || got > 12<<20 {
		t.Errorf("HugePageBytes = %d, %v", got, err)
	}
}

// TestPutAlignedEqualsWrite checks that PutAligned stores the same as Write, and
// accepts exactly the writes that begin and end at half words.
func TestPutAlignedEqualsWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var regions [2]*Region
		for i := range regions {
			r, err := Open(Config{Kind: "test", Size: 512})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			regions[i] = r
		}
		b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
		off := rapid.Uint64Range(0, 512-uint64(len(b))).Draw(t, "offset")
		if rapid.Bool().Draw(t, "half words") {
			b, off = b[:len(b)&^3], off&^3
		}
		if got, want := PutAligned(regions[0].Words(), off, b), off%4 == 0 && len(b)%4 == 0; got != want {
			t.Fatalf("PutAligned of %d bytes at %d = %v; want %v", len(b), off, got, want)
		} else if got {
			if err := regions[1].Write(off, b); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(regions[0].Words(), regions[1].Words()) {
			t.Fatalf("PutAligned left\n%x\nWrite\n%x", regions[0].Words(), regions[1].Words())
		}
	})
}
