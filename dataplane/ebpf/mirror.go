package ebpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	inmirror "github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// MaxTruncate is how much of a frame a mirror can have, labels not counted: MAX_FRAME of
// mirror.c holds these, too.
const MaxTruncate = 512

// Mirrors is match and mirror in the kernel. One goroutine calls Read.
type Mirrors struct {
	cfg inmirror.Config
	sw  model.NodeID

	objects mirrorObjectObjects
	ring    *ringbuf.Reader
	links   []attachment

	record ringbuf.Record
	data   []byte
}

// LoadMirrors loads the program into the kernel. It attaches nothing.
func LoadMirrors(sw model.NodeID, cfg inmirror.Config) (*Mirrors, error) {
	if err := checkMirrors(&cfg); err != nil {
		return nil, err
	}
	m := &Mirrors{cfg: cfg, sw: sw}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("ebpf: mirrors of switch %d: %w", sw, errors.Join(err, m.Close()))
	}
	return m, nil
}

func checkMirrors(cfg *inmirror.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	switch {
	case cfg.Protocol || len(cfg.Rules) > 0:
		return errors.New("ebpf: mirrors of control protocols or by rules, want those by TCP flags, debug mark and sample")
	case len(cfg.Collectors) > 0:
		return errors.New("ebpf: mirrors as ERSPAN, want reports")
	case cfg.Truncate > MaxTruncate:
		return fmt.Errorf("ebpf: mirrors of %d bytes, want at most %d", cfg.Truncate, MaxTruncate)
	}
	return nil
}

// window is the time that a budget is for: 2^WINDOW_SHIFT ns of mirror.c.
const window = 1 << 26 * time.Nanosecond

func (m *Mirrors) load() error {
	spec, err := loadMirrorObject()
	if err != nil {
		return err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	below := uint64(0)
	if m.cfg.SampleOneIn > 0 {
		below = (1 << 32) / uint64(m.cfg.SampleOneIn)
	}
	budget := uint64(0)
	if m.cfg.Rate > 0 {
		budget = max(1, uint64(float64(m.cfg.Rate)/8*window.Seconds()))
	}
	for name, value := range map[string]any{
		mirrorObjectVarSampleSeed: m.cfg.Seed, mirrorObjectVarSampleBelow: below, mirrorObjectVarWindowBytes: budget,
		mirrorObjectVarTruncate: uint32(m.cfg.Truncate), mirrorObjectVarReportPorts: [2]uint16{dta.Port, dta.AckPort},
		mirrorObjectVarMirrorTypes: [3]uint16{erspan.ProtoII, erspan.ProtoIII, erspan.ProtoMellanox},
		mirrorObjectVarDebugMask:   m.cfg.DebugMask, mirrorObjectVarByTcpFlags: m.cfg.TCPFlags,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("constant %s: %w", name, err)
		}
	}
	if err := spec.LoadAndAssign(&m.objects, nil); err != nil {
		return loadError(err)
	}
	m.ring, err = ringbuf.NewReader(m.objects.Mirrors)
	return err
}

// NumberPort gives an interface the number of a port in mirrors.
func (m *Mirrors) NumberPort(ifindex int, port model.PortID) error {
	return numberPort(m.objects.Ports, ifindex, port)
}

// Attach attaches the program to the ingress of an interface of this network namespace,
// behind an XDP program if that is the hook.
func (m *Mirrors) Attach(ifindex int, hook Hook) error {
	if hook == XDP {
		hook = TC
	}
	l, err := attach(ifindex, hook, m.objects.MirrorTcx, nil, "mirror")
	if err != nil {
		return err
	}
	m.links = append(m.links, attachment{ifindex, l})
	return nil
}

// DetachAll detaches the program from all interfaces.
func (m *Mirrors) DetachAll() error { return detach(&m.links) }

// headSize is where the frame begins in struct record of mirror.c.
const headSize = 72

// Read waits until packets were selected, and passes the mirrors of all that are there to
// emit, which must not keep them. After Interrupt it returns io.EOF once all are read.
func (m *Mirrors) Read(emit func(list dta.ListID, data []byte)) error {
	for {
		if err := m.ring.ReadInto(&m.record); errors.Is(err, ringbuf.ErrFlushed) {
			return io.EOF
		} else if err != nil {
			return fmt.Errorf("ebpf: mirrors: %w", err)
		}
		one, shard := m.decode(m.record.RawSample)
		offset, err := wallOffset()
		if err != nil {
			return err
		}
		one.Time += model.Time(offset)
		m.data = one.AppendTo(m.data[:0])
		emit(m.cfg.List+dta.ListID(shard), m.data)
		if m.record.Remaining == 0 {
			return nil
		}
	}
}

// Interrupt ends Read.
func (m *Mirrors) Interrupt() error {
	if err := m.ring.Flush(); err != nil {
		return fmt.Errorf("ebpf: mirrors: %w", err)
	}
	return nil
}

// wallOffset is that of the wall clock from the monotonic clock.
func wallOffset() (int64, error) {
	var mono, wall unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return 0, fmt.Errorf("ebpf: %w", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		return 0, fmt.Errorf("ebpf: %w", err)
	}
	return wall.Nano() - mono.Nano(), nil
}

// decode reads a record of the kernel's. The mirror's time is of the monotonic clock.
func (m *Mirrors) decode(b []byte) (one mirror.Mirror, shard uint32) {
	le := binary.LittleEndian
	var words [5]uint64
	for i := range words {
		words[i] = le.Uint64(b[8+8*i:])
	}
	length, limit, captured := le.Uint32(b[48:]), int(le.Uint32(b[52:])), le.Uint32(b[56:])
	tagType, tag := le.Uint16(b[64:]), le.Uint16(b[66:])
	v6, keyed := b[68] != 0, b[69] != 0
	frame := b[headSize : headSize+captured]
	if tagType != 0 && len(frame) >= macs {
		// The tag that the kernel took out of the frame.
		tagged := make([]byte, 0, len(frame)+4)
		tagged = append(tagged, frame[:macs]...)
		tagged = binary.BigEndian.AppendUint16(tagged, tagType)
		tagged = binary.BigEndian.AppendUint16(tagged, tag)
		frame = append(tagged, frame[macs:]...)
		frame = frame[:min(len(frame), limit)]
		length += 4
	}
	one = mirror.Mirror{
		Reasons: mirror.Reasons(b[70]), Switch: m.sw,
		In: model.PortID(le.Uint16(b[60:])), Out: model.PortID(le.Uint16(b[62:])),
		Time: model.Time(le.Uint64(b)), Length: uint16(min(length, math.MaxUint16)), Frame: frame,
	}
	switch key := (model.FlowKey{}); {
	case !keyed:
		return one, uint32(m.sw) % m.cfg.Lists
	case v6:
		key = sketch.Key6(words).FlowKey()
		return one, mirror.Shard(&key, m.cfg.Lists)
	default:
		key = sketch.Key4(words[:2]).FlowKey()
		return one, mirror.Shard(&key, m.cfg.Lists)
	}
}

// macs is the length of the addresses before the type or tag of an Ethernet frame.
const macs = 12

// MirrorStats are the counters of inswitch/mirror, and what user space was too late for.
type MirrorStats struct {
	inmirror.Stats
	Lost uint64 // packets
}

// Stats returns the current counters.
func (m *Mirrors) Stats() (s MirrorStats, err error) {
	var c mirrorObjectMirrorCounts
	if err := m.objects.MirrorCounters.Lookup(uint32(0), &c); err != nil {
		return s, fmt.Errorf("ebpf: counters of mirrors: %w", err)
	}
	s.Mirrored, s.Bytes, s.Flag, s.Sample, s.Debug = c.Mirrored, model.Bytes(c.Bytes), c.Flag, c.Sample, c.Debug
	s.RateLimited, s.Telemetry, s.Lost = c.RateLimited, c.Telemetry, c.Lost
	return s, nil
}

// Close detaches the program from all interfaces and ends Read.
func (m *Mirrors) Close() error {
	err := m.DetachAll()
	if m.ring != nil {
		if e := m.ring.Close(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, m.objects.Close())
}
