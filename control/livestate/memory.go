package livestate

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Memory answers from a collector's memory. Many goroutines may ask it while reports
// arrive, for as long as the collector has not closed its memory.
type Memory struct {
	fabric *topo.Fabric
	epoch  time.Time
	ports  *keywrite.Table
	counts *count.Table
	cards  *postcard.Table
}

var _ api.KeyedMemory = (*Memory)(nil)

// New returns the reader of a memory that has the tables of a Plan. The fabric's
// clocks show 0 at the epoch.
func New(f *topo.Fabric, epoch time.Time, m *translate.Memory) (*Memory, error) {
	r, err := newMemory(f, m)
	if err == nil {
		r.epoch = epoch
	}
	return r, err
}

func newMemory(f *topo.Fabric, m *translate.Memory) (*Memory, error) {
	r := &Memory{fabric: f}
	for _, t := range m.KeyWrites {
		if t.Config().Value == keyed.PortStateSize {
			r.ports = t
		}
	}
	if r.ports == nil {
		return nil, errors.New("livestate: the collector has no memory for port states")
	}
	if r.counts = m.Counts; r.counts == nil {
		return nil, errors.New("livestate: the collector has no memory for counters")
	}
	if r.cards = m.Postcards; r.cards == nil {
		return nil, errors.New("livestate: the collector has no memory for postcards")
	}
	return r, nil
}

// WallTime is part of api.KeyedMemory.
func (m *Memory) WallTime(t model.Time) time.Time { return m.epoch.Add(time.Duration(t)) }

// readTries is how often a key is read whose copies differ: they do for as long as a
// writer takes to write all of them, some 20 ns.
const readTries = 4

// PortState is part of api.KeyedMemory.
func (m *Memory) PortState(p model.Port) (s keyed.PortState, found bool, err error) {
	var key [keyed.PortKeySize]byte
	var values [slothash.MaxCopies * (keyed.PortStateSize + 8)]byte
	keyed.PortKey{Port: p}.AppendTo(key[:0])
	err = region.Guard(func() error {
		for range readTries {
			a, err := m.ports.Lookup(values[:0], key[:], keywrite.Query{})
			if err != nil || a.Outcome == keywrite.Absent {
				return err
			}
			if a.Outcome == keywrite.Found {
				found = s.Parse(a.Value) == nil
				return nil
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("livestate: state of %s: %w", m.fabric.PortName(p), err)
	}
	return s, found, err
}
