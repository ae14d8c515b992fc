package ebpf

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// Job is what all of a slot's work costs, in nanoseconds per packet.
type Job struct {
	Program float64 // by the kernel's own accounting, less that of a program that does nothing
	// Export is the time of a CPU, in kernel and user space, until the slot's counters are in user
	// space and the table is empty. Sending them is not in it.
	Export float64
}

// Total is all of it.
func (j Job) Total() float64 { return j.Program + j.Export }

// Jobs are the costs of the same slots in a flowset and in hash maps of flow agents.
type Jobs struct {
	Flowset Job
	HashMap Job
	CPUMap  Job // a hash map with counters of each CPU

	Chunks  [][]byte                         // of the flowset's last slot
	Records map[model.FlowKey]PacketsOfBytes // of the hash map's last slot
}

// PacketsOfBytes are the counters of a flow.
type PacketsOfBytes struct{ Packets, Bytes uint64 }

// MeasureJobs counts each flow's packets in random order, and exports and clears the tables, slot
// after slot, in alternating rounds. It needs root.
func MeasureJobs(ctx context.Context, flows, each, slots int) (j Jobs, err error) {
	accounting, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return j, loadError(err)
	}
	defer accounting.Close()
	f, err := loadForCost(flows)
	if err != nil {
		return j, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var objects peerObjectObjects
	spec, err := loadPeerObject()
	if err != nil {
		return j, err
	}
	// As few buckets as hold the flows, which is best for a map that is read and cleared as a whole.
	for _, name := range []string{peerObjectMapFlows, peerObjectMapCpuFlows} {
		spec.Maps[name].MaxEntries = powerOf2(flows)
	}
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return j, loadError(err)
	}
	defer objects.Close()

	own := &flowsetJob{f: f}
	own.clock()
	shared, perCPU := newMapJob(objects.Flows, 1), newMapJob(objects.CpuFlows, ebpf.MustPossibleCPU())
	sides := []struct {
		cost    *Job
		program *ebpf.Program
		export  func() (flows, packets uint64, err error)
	}{
		{new(Job), objects.Nothing, func() (uint64, uint64, error) { return uint64(flows), uint64(flows * each), nil }},
		{&j.Flowset, f.objects.FlowsetTcx, own.export},
		{&j.HashMap, objects.HashMap, shared.export},
		{&j.CPUMap, objects.CpuHashMap, perCPU.export},
	}
	r, order := rand.New(rand.NewPCG(3, uint64(each))), make([]int, flows*each)
	for i := range order {
		order[i] = i % flows
	}
	frame, packets := costFrame(), float64(slots*len(order))
	for slot := range slots {
		r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		own.keep = slot == slots-1
		for _, s := range sides {
			ns, err := runAll(ctx, s.program, frame, order)
			if err != nil {
				return j, err
			}
			s.cost.Program += ns / packets
			ns, counted, counts, err := timed(s.export)
			if err != nil {
				return j, err
			}
			if counted != uint64(flows) || counts != uint64(len(order)) {
				return j, fmt.Errorf("ebpf: %v counted %d packets of %d flows, want %d of %d", s.program, counts, counted, len(order), flows)
			}
			s.cost.Export += ns / packets
		}
	}
	for _, s := range sides[1:] {
		s.cost.Program -= sides[0].cost.Program
	}
	j.Chunks, j.Records = own.chunks, shared.records()
	return j, nil
}

func powerOf2(n int) uint32 {
	p := uint32(1)
	for p < uint32(n) {
		p *= 2
	}
	return p
}

// runAll runs a program on a packet of each flow of a list, and returns its nanoseconds.
func runAll(ctx context.Context, p *ebpf.Program, frame []byte, order []int) (ns float64, err error) {
	before, err := p.Stats()
	if err != nil {
		return 0, err
	}
	for i, flow := range order {
		if i%4096 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err := runFlow(p, frame, flow); err != nil {
			return 0, err
		}
	}
	after, err := p.Stats()
	if err != nil {
		return 0, err
	}
	return float64(after.Runtime - before.Runtime), nil
}

// timed returns the CPU time of an export.
func timed(export func() (uint64, uint64, error)) (ns float64, flows, packets uint64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	flows, packets, err = export()
	return float64(threadTime() - before), flows, packets, err
}

func threadTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every kernel has it
	}
	return t.Nano()
}

// flowsetJob exports a flowset, whose slots end when it does.
type flowsetJob struct {
	f      *Flowset
	ahead  time.Duration // of the clock
	keep   bool          // the chunks
	chunks [][]byte
}

// clock sets a clock that is ahead of the kernel's by ended slots.
func (o *flowsetJob) clock() {
	o.f.clock = func() (monotonic, offset int64, err error) {
		monotonic, offset, err = coarseClock()
		return monotonic, offset + int64(o.ahead), err
	}
}

func (o *flowsetJob) export() (flows, packets uint64, err error) {
	o.ahead += o.f.cfg.Slot
	if _, err := o.f.Advance(); err != nil {
		return 0, 0, err
	}
	e, err := o.f.Export(func(chunk []byte) {
		if o.keep {
			o.chunks = append(o.chunks, append([]byte(nil), chunk...))
		}
	})
	return e.Flows, e.Packets, err
}

// mapJob exports a hash map, as fast as the kernel lets it: all entries by one system call.
type mapJob struct {
	m      *ebpf.Map
	cpus   int
	keys   []peerObjectFlowKey
	values []peerObjectFlowCounts // of each CPU, entry by entry
	read   int
	at     uint32 // where the kernel stopped
}

func newMapJob(m *ebpf.Map, cpus int) *mapJob {
	n := int(m.MaxEntries())
	return &mapJob{m: m, cpus: cpus, keys: make([]peerObjectFlowKey, n), values: make([]peerObjectFlowCounts, n*cpus)}
}

// batch is bpf_attr of BPF_MAP_LOOKUP_AND_DELETE_BATCH.
type batch struct {
	in, out, keys, values uint64
	count, fd             uint32
	elemFlags, flags      uint64
}

const lookupAndDeleteBatch = 25

func (o *mapJob) export() (flows, packets uint64, err error) {
	b := batch{
		out: address(&o.at), keys: address(&o.keys[0]), values: address(&o.values[0]), count: uint32(len(o.keys)), fd: uint32(o.m.FD()),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, lookupAndDeleteBatch, uintptr(unsafe.Pointer(&b)), unsafe.Sizeof(b))
	runtime.KeepAlive(o)
	if errno != 0 && errno != unix.ENOENT { // ENOENT: that was all
		return 0, 0, fmt.Errorf("ebpf: read %v: %w", o.m, errno)
	}
	o.read = int(b.count)
	for i := range o.read {
		for cpu := 1; cpu < o.cpus; cpu++ {
			o.values[i*o.cpus].Packets += o.values[i*o.cpus+cpu].Packets
			o.values[i*o.cpus].Bytes += o.values[i*o.cpus+cpu].Bytes
		}
		packets += o.values[i*o.cpus].Packets
	}
	return uint64(o.read), packets, nil
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

// records returns what was exported last.
func (o *mapJob) records() map[model.FlowKey]PacketsOfBytes {
	all := make(map[model.FlowKey]PacketsOfBytes, o.read)
	for i, k := range o.keys[:o.read] {
		v := o.values[i*o.cpus]
		key := model.FlowKey{
			Src: model.Addr4(bits.ReverseBytes32(k.Src)), Dst: model.Addr4(bits.ReverseBytes32(k.Dst)),
			SrcPort: bits.ReverseBytes16(k.SrcPort), DstPort: bits.ReverseBytes16(k.DstPort), Proto: model.Proto(k.Proto),
		}
		all[key] = PacketsOfBytes{v.Packets, v.Bytes}
	}
	return all
}
