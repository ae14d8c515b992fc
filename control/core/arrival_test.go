package core

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// largeSlots is a fabric whose switches have 100,000 flows in a slot: the plan, and
// the chunks of a slot.
func largeSlots(t *testing.T) (f *topo.Fabric, plan control.ListPlan, chunks int) {
	t.Helper()
	const flows = 100_000
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	plan = control.DefaultListPlan(f)
	if err := plan.PlanFlowsets(flows); err != nil {
		t.Fatal(err)
	}
	if chunks, err = control.ChunksPerSlot(flows); err != nil || chunks < 2500 {
		t.Fatalf("a slot of %d flows is %d chunks, %v; want at least 2,500", flows, chunks, err)
	}
	return f, plan, chunks
}

// largeChunk is a report as long as a chunk, with a number in front.
func largeChunk(n int) []byte {
	return binary.BigEndian.AppendUint32(make([]byte, 0, 1400), uint32(n))[:1400]
}

// TestListHoldsTwoLargeSlots: two slots of 100,000 flows wait in a list until they
// are read, and nothing of them is overwritten.
func TestListHoldsTwoLargeSlots(t *testing.T) {
	f, plan, chunks := largeSlots(t)
	keyed, err := livestate.PlanFor(f, livestate.Sizes{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewInProcessCollector(plan.Memory(1472), keyed, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sw := f.Switches()[3]
	w, buf := dta.NewWriter(sw, 1), make([]byte, 1500)
	for n := range 2 * chunks {
		w.Begin(buf)
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: plan.FlowsetList(sw), Data: largeChunk(n)}); err != nil {
			t.Fatal(err)
		}
		c.Receive(0, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 1), w.Finish())
	}
	got := 0
	err = c.Drain(0, func(id dta.ListID, data []byte) {
		if n := binary.BigEndian.Uint32(data); id != plan.FlowsetList(sw) || n != uint32(got) || len(data) != 1400 {
			t.Errorf("list %d has chunk %d of %d bytes; want chunk %d in list %d", id, n, len(data), got, plan.FlowsetList(sw))
		}
		got++
	})
	if err != nil || got != 2*chunks || c.Lost() != 0 {
		t.Errorf("%d of %d chunks were read, %d were overwritten, %v; want all, none", got, 2*chunks, c.Lost(), err)
	}
}

// TestLargeSlotsAreAccountedFor sends a slot of 100,000 flows of each of 20 switches over
// loopback, as fast as it takes them: what was sent was read, or is counted as lost.
// Where the receive buffer holds the slot of all switches, as weft serve plans it,
// nothing is lost, however late it is read.
func TestLargeSlotsAreAccountedFor(t *testing.T) {
	for name, change := range map[string]func(cfg *collector.Config, plan *control.ListPlan){
		"planned":              func(cfg *collector.Config, _ *control.ListPlan) { cfg.ReceiveBuffer = 160 << 20 },
		"small receive buffer": func(cfg *collector.Config, _ *control.ListPlan) { cfg.ReceiveBuffer = 64 << 10 },
		"small lists":          func(_ *collector.Config, plan *control.ListPlan) { plan.FlowsetEntries = 0 },
	} {
		t.Run(name, func(t *testing.T) { accountForLargeSlots(t, change) })
	}
}

func accountForLargeSlots(t *testing.T, change func(cfg *collector.Config, plan *control.ListPlan)) {
	f, plan, chunks := largeSlots(t)
	cfg := collector.DefaultConfig()
	change(&cfg, &plan)
	cfg.Listen, cfg.Status = netip.MustParseAddrPort("127.0.0.1:0"), netip.AddrPort{}
	cfg.Memory = collector.MemoryConfig{Lists: []list.Config{plan.Memory(1472)}}
	drained, read := make(chan struct{}), make(chan struct{})
	var c *collector.Collector
	var end collector.Status // of the workers, which have ended, before the memory is closed
	cfg.Drained = func() { close(drained); <-read; end = c.Status() }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	c, err = collector.New(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInbox(c.Memory())
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()

	switches := f.Switches()
	newest := make([]atomic.Int64, len(switches)) // chunk of each switch, plus one
	taken, disorder := uint64(0), 0
	take := func(id dta.ListID, data []byte) {
		i, n := id-plan.Flowsets.First, int64(binary.BigEndian.Uint32(data))+1
		if taken++; n <= newest[i].Load() || len(data) != 1400 {
			disorder++
		}
		newest[i].Store(n)
	}
	go func() {
		defer close(read)
		for {
			select {
			case <-drained:
				_, _ = in.Poll(take)
				return
			default:
				if n, _ := in.Poll(take); n == 0 {
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
	}()
	conn, err := net.Dial("udp", c.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent, buf := uint64(0), make([]byte, 1500)
	send := func(w *dta.Writer, sw model.NodeID, n int) {
		w.Begin(buf)
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: plan.FlowsetList(sw), Data: largeChunk(n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(w.Finish()); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	// Losses before a reporter's first report and after its last are not visible: those
	// are sent until they have arrived.
	until := func(i int, n *int, w *dta.Writer) {
		for first := *n; newest[i].Load() <= int64(first); *n++ {
			send(w, switches[i], *n)
			for wait := 0; wait < 1000 && newest[i].Load() <= int64(first); wait++ {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	writers, next := make([]dta.Writer, len(switches)), make([]int, len(switches))
	for i, sw := range switches {
		writers[i] = dta.NewWriter(sw, 1)
		until(i, &next[i], &writers[i])
	}
	for range chunks {
		for i, sw := range switches {
			send(&writers[i], sw, next[i])
			next[i]++
		}
	}
	for i := range switches {
		until(i, &next[i], &writers[i])
	}
	cancel()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	lost := in.Lost()
	for _, l := range end.Losses() {
		if l.Stage == "intake" && l.Unit == "reports" {
			lost += l.Count
		}
	}
	if taken+lost != sent || disorder != 0 {
		t.Errorf("%d chunks sent, %d read, %d counted as lost, %d out of order; want every one read or counted\n%+v",
			sent, taken, lost, disorder, end.Losses())
	}
	granted, err := udp.GrantedBuffer(cfg.ReceiveBuffer)
	if err != nil {
		t.Fatal(err)
	}
	if lost > 0 && plan.FlowsetEntries > 2*chunks && uint64(granted) > sent*2304 {
		t.Errorf("%d of %d chunks are lost; want none with a buffer of %d bytes, and lists of %d entries", lost, sent, granted, plan.FlowsetEntries)
	}
	t.Logf("%d chunks of %d switches: %d read, %d lost", sent, len(switches), taken, lost)
}
