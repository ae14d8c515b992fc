package collector

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
)

// MemoryConfig is the geometry of the memories a collector opens. Reports without
// a memory are refused.
type MemoryConfig struct {
	Dir       string // directory of their files; empty for anonymous memory
	KeyWrites []keywrite.Config
	Counts    *count.Config
	Postcards *postcard.Config
	Lists     []list.Config
}

// DefaultMemory has memory for all primitives on a laptop: newest values of 4 and
// of 20 bytes, counters, paths of 5 hops, lists of small events and lists of
// reports as large as a datagram.
func DefaultMemory() MemoryConfig {
	counts := count.DefaultConfig(32 << 20)
	postcards := PostcardConfig(5, 64<<20)
	return MemoryConfig{
		KeyWrites: []keywrite.Config{KeyWriteConfig(4, 64<<20), KeyWriteConfig(20, 64<<20)},
		Counts:    &counts,
		Postcards: &postcards,
		Lists: []list.Config{{Layout: list.Weft, Batch: 16, Classes: []list.Class{
			{Lists: 64, Entry: 80, Capacity: 4096, Sized: true},
			{Lists: 64, Entry: 1400, Capacity: 512, Sized: true},
		}}},
	}
}

// KeyWriteConfig is the geometry for values of value bytes in a memory of about
// size bytes.
func KeyWriteConfig(value int, size int64) keywrite.Config {
	c := keywrite.DefaultConfig(8)
	c.Value = value
	c.Slots = uint64(max(1, size/c.Size()))
	return c
}

// PostcardConfig is the geometry for paths of at most hops hops in a memory of
// about size bytes.
func PostcardConfig(hops int, size int64) postcard.Config {
	c := postcard.Config{Layout: postcard.Sealed, Chunks: 1, Hops: hops, Bits: 32}
	c.Chunks = uint64(max(1, size/c.Size()))
	return c
}

// PrototypeMemory is the memory layout of the public prototype, with its default
// number of lists.
func PrototypeMemory(dir string) MemoryConfig {
	m := MemoryConfig{
		Dir:       dir,
		KeyWrites: []keywrite.Config{{Layout: keywrite.Prototype, Slots: 1 << 23, Value: 4, Check: 32}},
		Counts:    &count.Config{Layout: count.Prototype, Cells: 1 << 22},
		Postcards: &postcard.Config{Layout: postcard.Prototype, Chunks: 1 << 21, Hops: 5, Bits: 32},
	}
	for range 4 {
		m.Lists = append(m.Lists, list.Config{Layout: list.Prototype, Batch: 4, Classes: []list.Class{{Lists: 1, Entry: 4, Capacity: 1 << 16}}})
	}
	return m
}

// Plan returns the plan for writing reports into memories of this geometry.
func (m MemoryConfig) Plan() (_ *translate.Plan, err error) {
	p := &translate.Plan{}
	for _, cfg := range m.KeyWrites {
		s, err := keywrite.NewScheme(cfg)
		if err != nil {
			return nil, err
		}
		p.KeyWrites = append(p.KeyWrites, s)
	}
	if m.Counts != nil {
		if p.Counts, err = count.NewScheme(*m.Counts); err != nil {
			return nil, err
		}
	}
	if m.Postcards != nil {
		if p.Postcards, err = postcard.NewScheme(*m.Postcards); err != nil {
			return nil, err
		}
	}
	for _, cfg := range m.Lists {
		s, err := list.NewScheme(cfg)
		if err != nil {
			return nil, err
		}
		p.Lists = append(p.Lists, s)
	}
	return p, p.Check()
}

// open maps all memories. An existing file keeps its content.
func (m MemoryConfig) open() (_ *translate.Memory, err error) {
	if m.Dir != "" {
		if err := os.MkdirAll(m.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	path := func(format string, args ...any) string {
		if m.Dir == "" {
			return ""
		}
		return filepath.Join(m.Dir, fmt.Sprintf(format, args...)+".weft")
	}
	all := &translate.Memory{}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(all))
		}
	}()
	for _, cfg := range m.KeyWrites {
		t, err := keywrite.Open(path("key-write-%d", cfg.Value), cfg)
		if err != nil {
			return nil, err
		}
		all.KeyWrites = append(all.KeyWrites, t)
	}
	if m.Counts != nil {
		if all.Counts, err = count.Open(path("key-increment"), *m.Counts); err != nil {
			return nil, err
		}
	}
	if m.Postcards != nil {
		if all.Postcards, err = postcard.Open(path("postcarding"), *m.Postcards); err != nil {
			return nil, err
		}
	}
	for i, cfg := range m.Lists {
		t, err := list.Open(path("append-%d", i), cfg)
		if err != nil {
			return nil, err
		}
		all.Lists = append(all.Lists, t)
	}
	return all, nil
}

// closeAll syncs files to disk and unmaps all memories.
func closeAll(m *translate.Memory) error {
	var errs []error
	for _, r := range m.Regions() {
		errs = append(errs, r.Sync(), r.Close())
	}
	return errors.Join(errs...)
}
