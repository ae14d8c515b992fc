package erspan

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Source is ERSPAN mirrors.
var Source = source.Source{
	Kind: "erspan", Title: "ERSPAN mirrors", Proto: model.GRE, NoOutPort: true,
	NewConfig: func() source.Config { return &SourceConfig{DebugMark: 1} },
	SwitchKeys: []source.SwitchKey{
		{Key: "address", Want: "an IP address", Ok: func(text string) bool { _, err := netip.ParseAddr(text); return err == nil }},
		{Key: "pad", Want: "bytes, at most 1023", Ok: func(text string) bool { _, err := strconv.ParseUint(text, 10, 10); return err == nil }},
	},
	Identify: func(f *source.Fabric) (map[model.NodeID]string, error) {
		list := map[model.NodeID]string{}
		for i := range f.Switches {
			list[f.Switches[i].ID] = mirrorAddr(&f.Switches[i]).String()
		}
		return list, nil
	},
}

// mirrorAddr is the address that a switch's mirrors come from.
func mirrorAddr(s *source.Switch) model.Addr {
	if a, err := netip.ParseAddr(s.Values["address"]); err == nil {
		return model.AddrOf(a.Unmap())
	}
	return s.Addr
}

// SourceConfig is the section erspan of a service's configuration.
type SourceConfig struct {
	Listen    netip.Addr // the zero value: disabled
	DebugMark int
}

// Settings is part of source.Config.
func (c *SourceConfig) Settings() []source.Setting {
	return []source.Setting{
		{
			Key: "listen", About: "local address that receives ERSPAN mirrors, which needs CAP_NET_RAW; empty: disabled",
			Value: &c.Listen,
		},
		{Key: "debug_mark", About: "DSCP bits of the debug mark", Value: &c.DebugMark},
	}
}

// Check is part of source.Config.
func (c *SourceConfig) Check() error {
	if c.DebugMark < 0 || c.DebugMark > 63 {
		return source.Errorf("erspan.debug_mark", "%d, want 0 to 63", c.DebugMark)
	}
	return nil
}

// Address is part of source.Config.
func (c *SourceConfig) Address() string {
	if !c.Listen.IsValid() {
		return ""
	}
	return c.Listen.String()
}

// Ports is part of source.Config: GRE has none.
func (c *SourceConfig) Ports() []uint16 { return nil }

// Clone is part of source.Config.
func (c *SourceConfig) Clone() source.Config { n := *c; return &n }

// NewDecoder is part of source.Adapter.
func (c *SourceConfig) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	byAddr, pads := map[model.Addr]model.NodeID{}, map[model.Addr]int{}
	for i := range f.Switches {
		s := &f.Switches[i]
		addr := mirrorAddr(s)
		if _, given := s.Values["address"]; given {
			byAddr[addr] = s.ID
		}
		if text, given := s.Values["pad"]; given {
			pads[addr], _ = strconv.Atoi(text) // checked when it was set
		}
	}
	d, err := NewDecoder(Config{Pads: pads, Debug: uint8(c.DebugMark), Switch: func(a model.Addr) (model.NodeID, bool) {
		if id, ok := byAddr[a]; ok {
			return id, true
		}
		return f.ByAddr(a)
	}})
	return &sourceDecoder{Decoder: d, out: out}, err
}

type sourceDecoder struct {
	*Decoder
	out source.Output
}

// Decode is part of source.Decoder.
func (d *sourceDecoder) Decode(at model.Time, from netip.AddrPort, packet []byte) bool {
	before := d.stats.Mirrors
	d.DecodeGRE(at, model.AddrOf(from.Addr()), packet, func(m *mirror.Mirror) { d.out.Mirror(at, m) })
	return d.stats.Mirrors > before
}

// DecodeMirrored is part of source.FrameDecoder.
func (d *sourceDecoder) DecodeMirrored(at model.Time, sw model.NodeID, data []byte, ethernet bool) {
	d.DecodeSPAN(at, sw, data, ethernet, func(m *mirror.Mirror) { d.out.Mirror(at, m) })
}

// Counters is part of source.Decoder.
func (d *sourceDecoder) Counters() source.Counters { return counters(d.Stats(), 0) }

func counters(s Stats, dropped uint64) source.Counters {
	malformed := s.Truncated + s.Empty + s.Version + s.Unsupported + s.NotIP + s.Fragment
	return source.Counters{Unit: "packets", In: s.Packets + dropped, Out: s.Mirrored, Losses: []source.Loss{
		{Reason: source.QueueFull, About: "dropped by the kernel's socket buffer", Count: dropped},
		{Reason: "missing", About: "missing by sequence number", Count: s.Missing},
		{Reason: "unknown switch", About: "from an address of no switch", Count: s.Unknown},
		{Reason: "malformed", About: "truncated, or of an unknown version", Count: malformed},
		{Reason: "no mirror", About: "GRE with another payload", Count: s.NoMirror + s.Other, Expected: true},
	}}
}

// OpenSocket is part of source.Adapter.
func (c *SourceConfig) OpenSocket(d source.Decoder) (source.Listener, error) {
	dec := d.(*sourceDecoder)
	l, err := Listen(c.Listen, dec.Decoder)
	if err != nil {
		return nil, fmt.Errorf("%w; weft trace --pcap reads a capture of them", err)
	}
	return &sourceListener{Listener: l, out: dec.out, addr: netip.AddrPortFrom(c.Listen, 0)}, nil
}

type sourceListener struct {
	*Listener
	out    source.Output
	addr   netip.AddrPort
	closed bool // by Run
}

// Run is part of source.Listener.
func (l *sourceListener) Run(ctx context.Context, tap source.Tap) error {
	if tap != nil {
		l.Tap = func(at model.Time, from netip.Addr, packet []byte, mirrored bool) {
			tap(at, netip.AddrPortFrom(from, 0), l.addr, packet, mirrored)
		}
	}
	l.closed = true
	return l.Listener.Run(ctx, l.out.Mirror)
}

// Addr is part of source.Listener.
func (l *sourceListener) Addr() netip.AddrPort { return l.addr }

// Counters is part of source.Listener.
func (l *sourceListener) Counters() source.Counters { return counters(l.Stats()) }

// Close is part of source.Listener.
func (l *sourceListener) Close() error {
	if l.closed {
		return nil
	}
	return l.Listener.Close()
}
