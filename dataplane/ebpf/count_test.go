package ebpf

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	wire "github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/packet"
)

// tcpFrame is a TCP segment of a flow.
func tcpFrame(flow uint16, payload int) []byte {
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	b = packet.IPv4{Length: uint16(40 + payload), TTL: 9, Proto: model.TCP, Src: 10 << 24, Dst: 10<<24 | 1<<16}.AppendTo(b)
	b = packet.TCP{SrcPort: flow, DstPort: 80}.AppendTo(b)
	return append(b, make([]byte, payload)...)
}

// TestSegmentsCountAsPackets compares a packet that segmentation offload has joined
// with its segments.
func TestSegmentsCountAsPackets(t *testing.T) {
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	cfg.IPv6 = flowset.Table{}
	kernel, want := loadTest(t, f, cfg, now), newReference(t, cfg, now, f.Route)
	kernel.runTCX(t, f.ifindex[1], 3, tcpFrame(9, 2*1000+500))
	for _, payload := range []int{1000, 1000, 500} {
		want.frame(2, tcpFrame(9, payload))
	}
	compare(t, kernel.endSlot(t, now+model.Time(cfg.Slot)), want.endSlot(cfg.Slot))
}

// TestCPUsCountTogether has several threads count the same flows at once: sums and
// XORs are as if one had.
func TestCPUsCountTogether(t *testing.T) {
	const threads, flows, rounds = 4, 60, 40
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	cfg.IPv6 = flowset.Table{}
	kernel, want := loadTest(t, f, cfg, now), newReference(t, cfg, now, f.Route)
	for slot := range race.Less(20, 4) {
		errs := make(chan error, threads)
		var wg sync.WaitGroup
		for range threads {
			wg.Go(func() {
				errs <- f.within(func() error {
					for i := range flows * rounds {
						if _, _, err := kernel.objects.FlowsetTcx.Test(tcpFrame(uint16(slot*flows+i%flows), 100)); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range threads * flows * rounds {
			want.frame(1, tcpFrame(uint16(slot*flows+i%flows), 100))
		}
		now += model.Time(cfg.Slot)
		compare(t, kernel.endSlot(t, now), want.endSlot(cfg.Slot))
	}
}

// TestPacketsWithoutTableAreMissed fills all banks without an export.
func TestPacketsWithoutTableAreMissed(t *testing.T) {
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	kernel := loadTest(t, f, cfg, now)
	for range banks + 2 {
		kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
		now += model.Time(cfg.Slot)
		kernel.setTime(t, now)
	}
	e, err := kernel.Export(func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	if e.Slots != banks || e.Packets != banks || e.Missed != 2 {
		t.Errorf("Export = %+v; want %d slots of one packet, and 2 missed", e, banks)
	}
	now += model.Time(cfg.Slot)
	kernel.setTime(t, now)
	kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
	if e, err := kernel.Export(func([]byte) {}); err != nil || e != (Exported{}) {
		t.Errorf("Export of a slot that has not ended = %+v, %v; want nothing", e, err)
	}
	kernel.setTime(t, now+model.Time(cfg.Slot))
	if e, err := kernel.Export(func([]byte) {}); err != nil || e.Packets != 1 || e.Missed != 0 {
		t.Errorf("Export = %+v, %v; want one packet", e, err)
	}
}

// TestEmptySlotsWaitForNothing: a slot that nothing claimed is exported without waiting for
// programs, and a packet of that slot that comes later counts as missed, not into a later slot.
func TestEmptySlotsWaitForNothing(t *testing.T) {
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	kernel := loadTest(t, f, cfg, now)
	var slots []uint32
	export := func() Exported {
		e, err := kernel.Export(func(b []byte) {
			var c wire.Chunk
			if _, err := c.Parse(slices.Clone(b)); err != nil {
				t.Fatal(err)
			}
			slots = append(slots, c.Slot)
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	late := now
	now += 5 * model.Time(cfg.Slot)
	kernel.setTime(t, now)
	if e := export(); e.Slots != 5 || e.Waits != 0 || e.Packets != 0 {
		t.Errorf("Export = %+v; want 5 empty slots, and no wait", e)
	}
	first := uint32(kernel.slotAt(late))
	slots = slices.Compact(slots)
	if want := []uint32{first, first + 1, first + 2, first + 3, first + 4}; !slices.Equal(slots, want) {
		t.Errorf("slots %v; want %v", slots, want)
	}
	// A program that read the clock before the slot ended.
	kernel.memory.setClock(uint64(late), kernel.slotAt(late))
	kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
	kernel.setTime(t, now)
	kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
	kernel.setTime(t, now+model.Time(cfg.Slot))
	if e := export(); e.Slots != 1 || e.Waits != 1 || e.Packets != 1 || e.Missed != 1 {
		t.Errorf("Export = %+v; want one slot of one packet, and one missed", e)
	}
	// Further forward than there are tables: the last slots are reported.
	kernel.setTime(t, now+model.Time(time.Hour))
	if e := export(); e.Slots != banks || e.Waits != 0 {
		t.Errorf("Export = %+v; want %d slots, and no wait", e, banks)
	}
	// What arrives after Stop is in no table, and nothing opens one again.
	kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
	kernel.Stop()
	kernel.runTCX(t, f.ifindex[1], 0, tcpFrame(1, 0))
	if e := export(); e.Slots != 1 || e.Packets != 1 || e.Missed != 1 {
		t.Errorf("Export = %+v; want one slot of one packet, and one missed", e)
	}
	if word := *kernel.memory.bankWord(int(kernel.slotAt(now+model.Time(time.Hour)) % banks)); word != 0 {
		t.Errorf("after Stop the bank has state %#x; want it closed", word)
	}
}

// TestEmptySlotIsShort checks that a slot without packets takes one chunk for each
// section and family, and says what was not counted.
func TestEmptySlotIsShort(t *testing.T) {
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	kernel := loadTest(t, f, cfg, now)
	arp := packet.Ethernet{Type: packet.TypeARP}.AppendTo(nil)
	kernel.runTCX(t, f.ifindex[1], 0, append(arp, make([]byte, 46)...))
	chunks := kernel.endSlot(t, now+model.Time(cfg.Slot))
	if len(chunks) != 4 {
		t.Fatalf("an empty slot takes %d chunks; want 4", len(chunks))
	}
	for i, want := range []wire.Counts{{Unkeyed: 1}, {Unkeyed: 1}, {}, {}} {
		var c wire.Chunk
		if _, err := c.Parse(chunks[i]); err != nil || c.Counts != want {
			t.Errorf("chunk %d has counts %+v, %v; want %+v", i, c.Counts, err, want)
		}
	}
}

// TestAttachCounts attaches to a real interface and sends frames to it.
func TestAttachCounts(t *testing.T) {
	for _, hook := range Hooks() {
		t.Run(string(hook), func(t *testing.T) {
			f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
			kernel := loadTest(t, f, cfg, now)
			kernel.wait = waitForReaders
			err := kernel.Attach(f.ifindex[1], hook)
			if hook == TCX && !haveTCX(t) {
				if !errors.Is(err, ebpf.ErrNotSupported) {
					t.Fatalf("Attach = %v; want ErrNotSupported of a kernel before 6.6", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			send := rawSender(t, "peerport2")
			const flows, packets = 20, 7
			for i := range flows * packets {
				send(tcpFrame(uint16(i%flows), i%flows))
			}
			kernel.setTime(t, now+model.Time(cfg.Slot))
			var last wire.Chunk
			e, err := kernel.Export(func(c []byte) {
				if _, err := last.Parse(slices.Clone(c)); err != nil {
					t.Fatal(err)
				}
			})
			// IPv6 neighbour discovery of the interface is counted, too.
			if err != nil || e.Packets < flows*packets || e.Flows < flows || e.Missed+e.Inconsistent != 0 {
				t.Errorf("Export = %+v, %v; want at least %d packets of %d flows", e, err, flows*packets, flows)
			}
			if err := kernel.DetachAll(); err != nil {
				t.Fatal(err)
			}
			// Neighbour discovery before that is in the slot that ends here.
			kernel.setTime(t, now+2*model.Time(cfg.Slot))
			if _, err := kernel.Export(func([]byte) {}); err != nil {
				t.Fatal(err)
			}
			send(tcpFrame(1, 0))
			kernel.setTime(t, now+3*model.Time(cfg.Slot))
			if e, err := kernel.Export(func([]byte) {}); err != nil || e.Packets != 0 {
				t.Errorf("after DetachAll: Export = %+v, %v; want no packets", e, err)
			}
		})
	}
}

// FuzzFrames compares kernel and reference on single frames.
func FuzzFrames(f *testing.F) {
	fab := newFabric(f)
	cfg, now := testConfig(), model.Time(1e18)
	kernel := loadTest(f, fab, cfg, now)
	draw := newFrames(11)
	for range 40 {
		f.Add(draw.next(54))
	}
	var mu sync.Mutex
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 14 || len(frame) > 4000 {
			t.Skip("the kernel runs no such frame")
		}
		mu.Lock()
		defer mu.Unlock()
		want := newReference(t, cfg, now, fab.Route)
		if err := fab.within(func() error {
			_, _, err := kernel.objects.FlowsetXdp.Test(frame)
			return err
		}); err != nil {
			t.Fatalf("run %x: %v", frame, err)
		}
		want.frame(1, frame)
		now += model.Time(cfg.Slot)
		got, expected := kernel.endSlot(t, now), want.endSlot(cfg.Slot)
		if err := sameCounts(got, expected); err != nil {
			t.Fatalf("frame %x: %v", frame, err)
		}
	})
}

// sameCounts compares flowsets of which either may be exported in the shape of an
// empty one.
func sameCounts(got, want [][]byte) error {
	var g, w wire.Chunk
	cells := func(chunks [][]byte, c *wire.Chunk) (all []wire.Cell, counts []wire.Counts) {
		for _, b := range chunks {
			if _, err := c.Parse(b); err != nil {
				panic(err)
			}
			counts = append(counts, c.Counts)
			for i := range c.Len() {
				if c.Section == wire.Cells {
					var cell wire.Cell
					if c.Cell(i, &cell); cell != (wire.Cell{}) {
						all = append(all, cell)
					}
				}
			}
		}
		return all, slices.Compact(counts)
	}
	gotCells, gotCounts := cells(got, &g)
	wantCells, wantCounts := cells(want, &w)
	if !slices.Equal(gotCells, wantCells) || !slices.Equal(gotCounts, wantCounts) {
		return fmt.Errorf("kernel has %+v %+v; want %+v %+v", gotCounts, gotCells, wantCounts, wantCells)
	}
	return nil
}
