package erspan

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Source is ERSPAN mirrors.
var Source = source.Source{
	Kind: "erspan", Title: "ERSPAN mirrors", Proto: model.GRE, NoOutPort: true,
	NewConfig: func() source.Config {
		return &SourceConfig{DebugMark: 1, Limits: source.Limits{Rate: source.DefaultRate}}
	},
	SwitchKeys: []source.SwitchKey{
		{Key: "pad", Want: "bytes, at most 1023", Ok: func(text string) bool { _, err := strconv.ParseUint(text, 10, 10); return err == nil }},
	},
	Identify: func(f *source.Fabric) (map[model.NodeID]string, error) {
		list := map[model.NodeID]string{}
		for i := range f.Switches {
			list[f.Switches[i].ID] = mirrorAddrs(&f.Switches[i])
		}
		return list, nil
	},
}

// mirrorAddrs are the addresses that a switch's mirrors come from, for people.
func mirrorAddrs(s *source.Switch) string {
	if len(s.Prefixes) == 0 {
		return s.Addr.String()
	}
	return source.FormatPrefixes(s.Prefixes)
}

// SourceConfig is the section erspan of a service's configuration.
type SourceConfig struct {
	Listen    netip.Addr // the zero value: disabled
	DebugMark int
	Limits    source.Limits
}

// Settings is part of source.Config.
func (c *SourceConfig) Settings() []source.Setting {
	return append([]source.Setting{
		{
			Key: "listen", About: "local address that receives ERSPAN mirrors, which needs CAP_NET_RAW; 0.0.0.0 or ::, the latter for both IP families; empty: disabled",
			Value: &c.Listen,
		},
		{Key: "debug_mark", About: "DSCP bits of the debug mark", Value: &c.DebugMark},
	}, c.Limits.Settings()...)
}

// Check is part of source.Config.
func (c *SourceConfig) Check() error {
	if c.DebugMark < 0 || c.DebugMark > 63 {
		return source.Errorf("erspan.debug_mark", "%d, want 0 to 63", c.DebugMark)
	}
	return c.Limits.Check("erspan")
}

// Sources is part of source.Adapter.
func (c *SourceConfig) Sources() source.Limits { return c.Limits }

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

// NewDecoder is part of source.Adapter. Mirrors do not name their switch: their
// source address does. A switch is identified by the addresses that the
// configuration gives it, else by that of the topology.
func (c *SourceConfig) NewDecoder(f *source.Fabric, out source.Output) (source.Decoder, error) {
	byAddr, pads := map[model.Addr]*source.Switch{}, map[model.Addr]int{}
	byID := map[model.NodeID]*source.Switch{}
	for i := range f.Switches {
		s := &f.Switches[i]
		byID[s.ID] = s
		pad, padded := s.Values["pad"]
		padding, _ := strconv.Atoi(pad) // checked when it was set
		if padded {
			pads[s.Addr] = padding
		}
		for _, p := range s.Prefixes {
			if !p.IsSingleIP() {
				continue // several switches may report from it
			}
			a := model.AddrOf(p.Addr())
			if other, taken := byAddr[a]; taken && other != s && c.Listen.IsValid() {
				return nil, fmt.Errorf("switches: %s and %s have address %v, by which ERSPAN mirrors identify a switch; want different ones", other.Name, s.Name, a)
			}
			byAddr[a] = s
			if padded {
				pads[a] = padding
			}
		}
	}
	find := func(a model.Addr) (model.NodeID, bool) {
		if s := byAddr[a]; s != nil {
			return s.ID, true
		}
		id, ok := f.ByAddr(a)
		if !ok || !byID[id].SendsFrom(a.Netip()) {
			return 0, false
		}
		return id, true
	}
	d, err := NewDecoder(Config{
		Pads: pads, Debug: uint8(c.DebugMark), Switch: find, Refused: out.Refused,
		HasPort: func(sw model.NodeID, p model.PortID) bool { return int(p) <= byID[sw].Ports },
	})
	if err != nil {
		return nil, err
	}
	return &sourceDecoder{Decoder: d, out: out}, nil
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
func (d *sourceDecoder) Counters() source.Counters { return counters(d.Stats()) }

func counters(s Stats) source.Counters {
	malformed := s.Truncated + s.Empty + s.Version + s.Unsupported + s.NotIP + s.Fragment
	return source.Counters{Unit: "packets", In: s.Packets, Out: s.Mirrored, Losses: []source.Loss{
		{Reason: source.QueueFull, About: "dropped by the kernel's socket buffer"},
		{Reason: "missing", About: "missing by sequence number", Count: s.Missing},
		{Reason: "unknown switch", About: "from an address of no switch", Count: s.Unknown},
		{Reason: "malformed", About: "truncated, or of an unknown version", Count: malformed},
		{Reason: "no mirror", About: "GRE with another payload", Count: s.NoMirror + s.Other, Expected: true},
	}}
}

// OpenSocket is part of source.Adapter.
func (c *SourceConfig) OpenSocket(d source.Decoder, g source.Guard) (source.Listener, error) {
	dec := source.Unprotected(d).(*sourceDecoder)
	l, err := Listen(c.Listen, dec.Decoder)
	if err != nil {
		return nil, fmt.Errorf("%w; weft trace --pcap reads a capture of them", err)
	}
	l.Guard, l.Now, l.Panic = g, dec.out.Now, dec.out.Panic
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
func (l *sourceListener) Counters() source.Counters {
	s, lost := l.Stats()
	c := counters(s)
	add := func(reason, about string, n uint64) {
		c.Add(reason, about, n)
		c.In += n
	}
	add(source.QueueFull, "", lost.Dropped)
	add(translate.AddressNotAllowed.String(), "", lost.Refused[translate.AddressNotAllowed])
	add(translate.SourceRateLimit.String(), "", lost.Refused[translate.SourceRateLimit])
	return c
}

// Close is part of source.Listener.
func (l *sourceListener) Close() error {
	if l.closed {
		return nil
	}
	return l.Listener.Close()
}
