package ebpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

const (
	// banks is the number of tables, BANKS of flowset.c: one is filled while others wait
	// until no CPU writes to them, which takes up to 20 ms, and are exported. On a busy
	// machine the export may be late by a tenth of a second.
	banks  = 8
	noBank = banks // no table is free

	families = 2 // IPv4, IPv6

	// MaxSlot keeps the packets and bytes of a cell within one word of 64 bits:
	// 268 million packets and 68 GB in a slot.
	MaxSlot     = time.Second
	packetShift = 36
	maxBytes    = 1<<packetShift - 1

	// maxGroups is MAX_GROUPS of flowset.c.
	maxGroups = 16
)

// Flowset is a flowset in the kernel. One goroutine calls Advance, another Export.
type Flowset struct {
	cfg   flowset.Config
	sw    model.NodeID
	seed  uint64
	chunk int
	v4    *family[sketch.Key4]
	v6    *family[sketch.Key6]
	units []unit // those of v4 and v6 that there are

	objects flowsetObjectObjects
	memory  mapped
	links   []attachment

	slots      slots
	chunkBytes []byte // of Export
	clock      clock
	wait       func() error // until no CPU writes to a bank that was closed
}

// Plan sizes the flowset of a host for a number of flows in a slot, each flowset to be decoded alone. A
// packet of a known flow reads two words of the filter, where a switch reads three or four: a word is
// a miss of the cache.
func Plan(flows int) (flowset.Sizing, error) {
	plan, err := flowset.Plan(flows, 0.99, flowset.Single)
	if err == nil {
		plan.SetGroups(2)
	}
	return plan, err
}

// Load loads the program into the kernel. It attaches nothing.
func Load(sw model.NodeID, cfg flowset.Config) (*Flowset, error) {
	if err := check(&cfg); err != nil {
		return nil, err
	}
	return loadWith(sw, cfg, nil)
}

// loadWith is Load with a fixed clock of tests; nil: the kernel's.
func loadWith(sw model.NodeID, cfg flowset.Config, fixed clock) (*Flowset, error) {
	f := &Flowset{cfg: cfg, sw: sw, seed: flowset.SeedOf(cfg.Seed, sw, 0), chunk: cfg.MaxChunk(0), clock: coarseClock, wait: waitForReaders}
	if fixed != nil {
		f.clock = fixed
	}
	if err := f.load(fixed != nil); err != nil {
		return nil, fmt.Errorf("ebpf: flowset of switch %d: %w", sw, errors.Join(err, f.Close()))
	}
	return f, nil
}

func check(cfg *flowset.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	switch {
	case cfg.PerPort:
		return errors.New("ebpf: a flowset for every port, want one for the switch")
	case cfg.Outgoing:
		return errors.New("ebpf: a flowset of outgoing packets, want one of incoming ones")
	case cfg.Slot > MaxSlot:
		return fmt.Errorf("ebpf: slot %v, want at most %v", cfg.Slot, MaxSlot)
	}
	for _, t := range []*flowset.Table{&cfg.IPv4, &cfg.IPv6} {
		if t.TableCells > 0 && t.FilterHashes > maxGroups*sketch.GroupBits {
			return fmt.Errorf("ebpf: %d filter hashes, want at most %d", t.FilterHashes, maxGroups*sketch.GroupBits)
		}
		// Indices of the kernel's arrays have 32 bits.
		if banks*families*uint64(t.Cells()) > 1<<31 || banks*families*uint64(t.FilterBits/64) > 1<<31 {
			return fmt.Errorf("ebpf: %d cells and %d filter bits, want fewer than 2²⁸ cells", t.Cells(), t.FilterBits)
		}
	}
	return nil
}

// load makes the constants and maps of the tables, and loads programs and maps.
func (f *Flowset) load(fixedClock bool) error {
	spec, err := loadFlowsetObject()
	if err != nil {
		return err
	}
	// Kernels before 5.11 count maps against this limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	var shapes [families]flowsetObjectFamily
	words, counts := uint32(0), uint32(0)
	cells := [families]uint32{}
	for i, t := range []*flowset.Table{&f.cfg.IPv4, &f.cfg.IPv6} {
		if t.TableCells == 0 {
			continue
		}
		shapes[i] = flowsetObjectFamily{
			Groups: uint32(t.FilterHashes / sketch.GroupBits), Words: t.FilterBits / 64,
			Tables: uint32(t.Tables), Cells: t.TableCells, FirstWord: words, FirstCount: counts,
		}
		cells[i] = uint32(t.Cells())
		words += banks * shapes[i].Words
		counts += banks * cells[i]
	}
	any4or6 := f.cfg.IPv4.Geometry
	if cells[0] == 0 {
		any4or6 = f.cfg.IPv6.Geometry
	}
	hashes, err := sketch.NewFamily(any4or6, f.seed) // its constants do not depend on the shape
	if err != nil {
		return err
	}
	seed, patterns := hashes.Constants()
	for name, value := range map[string]any{
		flowsetObjectVarFamilies: shapes, flowsetObjectVarSeed: seed, flowsetObjectVarPatterns: patterns,
		flowsetObjectVarProbeMark: f.cfg.ProbeMark, flowsetObjectVarSlotLength: uint64(f.cfg.Slot),
		flowsetObjectVarFixedClock: fixedClock,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("constant %s: %w", name, err)
		}
	}
	for name, entries := range map[string]uint32{
		flowsetObjectMapSkipped: (banks + 1) * families, flowsetObjectMapFilter: words, flowsetObjectMapCounts: counts,
		flowsetObjectMapSums4: max(1, banks*cells[0]), flowsetObjectMapSums6: max(1, banks*cells[1]),
	} {
		spec.Maps[name].MaxEntries = entries
	}
	if err := spec.LoadAndAssign(&f.objects, nil); err != nil {
		return loadError(err)
	}
	if err := f.memory.mapAll(&f.objects.flowsetObjectMaps); err != nil {
		return err
	}
	f.newUnits(shapes)
	return nil
}

// loadError names what is missing.
func loadError(err error) error {
	var rejected *ebpf.VerifierError
	switch {
	case errors.As(err, &rejected):
		return fmt.Errorf("the kernel's verifier refuses the program: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; loading eBPF needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON", err)
	}
	return err
}

// Close detaches the program from all interfaces and frees its memory.
func (f *Flowset) Close() error {
	err := f.DetachAll()
	f.memory.unmap()
	return errors.Join(err, f.objects.Close())
}
