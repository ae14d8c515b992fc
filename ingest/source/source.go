// Package source describes the kinds of reports that Weft receives: their
// configuration, socket, decoder and counters. A source is implemented in its
// ingest package; ingest/sources lists all of them. What reports mean is left to
// the analyses.
package source

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// Kind is the name of a source: of its section in the configuration, its health
// stage, and its interface in recordings.
type Kind string

// Kinds of packets in captures that are no source.
const (
	Other Kind = "other" // not a report
	SPAN  Kind = "span"  // frames mirrored by one switch, without encapsulation
)

// Source is one row of the registry.
type Source struct {
	Kind  Kind
	Title string      // for people, such as "INT reports"
	Proto model.Proto // that carries reports: UDP or GRE

	// NewConfig returns the default configuration.
	NewConfig func() Config

	// SwitchKeys are what the configuration may say of a switch for this source.
	SwitchKeys []SwitchKey
	// Identify returns how reports identify each switch, for people; nil: they
	// contain its id.
	Identify func(f *Fabric) (map[model.NodeID]string, error)
	// NoOutPort says that mirrors do not contain the port by which a packet left.
	NoOutPort bool
	// HasCounters says that it makes readings of counters, or samples of packets.
	HasCounters bool
	// HasRoutes says that it makes updates of BGP routes.
	HasRoutes bool
	// Dials says that the service connects to switches, which send nothing unasked.
	Dials bool
	// Streams says that reports come over TCP: they cannot be sent as datagrams.
	Streams bool
}

// Config is the configuration of a source.
type Config interface {
	// Settings are the keys of its section, in the order of the file.
	Settings() []Setting
	// Check returns a *KeyError for the first invalid value.
	Check() error
	// Address is where reports are received; empty: the source is disabled.
	Address() string
	// Ports are the UDP ports that reports have in captures of other tools.
	Ports() []uint16
	Clone() Config
}

// Setting is one key of a section.
type Setting struct {
	Key   string // within the section
	About string
	Value any // a pointer into the Config: *string, *int, *netip.AddrPort …
	// Reload says that SIGHUP applies a new value.
	Reload bool
}

// SwitchKey is one key of a switch in the configuration.
type SwitchKey struct {
	Key  string
	Want string // of a value, for errors
	Ok   func(text string) bool
}

// KeyError is an invalid value of a key.
type KeyError struct {
	Key  string // or the section of several keys
	Text string
}

// Error is the key and what is wanted.
func (e *KeyError) Error() string { return e.Key + ": " + e.Text }

// Address is the text of where a source listens; empty: it does not.
func Address(listen netip.AddrPort) string {
	if !listen.IsValid() {
		return ""
	}
	return listen.String()
}

// Errorf returns a KeyError.
func Errorf(key, format string, args ...any) error {
	return &KeyError{key, fmt.Sprintf(format, args...)}
}

// Fabric is what decoders know of the switches.
type Fabric struct {
	Switches []Switch
	// ByAddr returns the switch with an address.
	ByAddr func(a model.Addr) (model.NodeID, bool)
	// Identity says which switch and port the names of switches on sale mean; all
	// sources share it.
	Identity *identity.Table
}

// Switch is a switch of the topology.
type Switch struct {
	ID     model.NodeID
	Name   string
	Addr   model.Addr
	Ports  int               // numbered from 1
	Values map[string]string // of SwitchKeys, as the configuration has them
	// Prefixes are where its reports come from, as the configuration says; none: it
	// does not.
	Prefixes []netip.Prefix
	// Port returns the port with an interface's name or a number: "Ethernet8", "3".
	Port func(text string) (model.PortID, bool)
	// PortName returns the interface's name of a port.
	PortName func(p model.PortID) string
	// Rate returns the rate of a port's link; 0: not known.
	Rate func(p model.PortID) model.Rate
}

// Output takes what reports contain, in Weft's formats: the data of a label
// export, a mirror, and reports for the collector's keyed memory. None may be kept.
type Output struct {
	Label  func(at model.Time, export []byte)
	Mirror func(at model.Time, m *mirror.Mirror)
	// Reading and Sample take what switches on sale report: counters of a port over an
	// interval, and sampled or dropped packets. Neither may be kept.
	Reading func(r *portstat.Reading)
	Sample  func(s *portstat.Sample)
	// Flow takes what a switch counted of a flow. It may not be kept.
	Flow func(r *portstat.FlowRecord)
	// Route takes an event of BGP monitoring. It may not be kept. Several goroutines may call it.
	Route func(u *bgproute.Update)
	// Collectives takes records of NCCL, and returns how many are of hosts that the fabric does
	// not have. Several goroutines may call it. It is nil where nothing follows jobs, as in a
	// replay.
	Collectives func(d *nccl.Dump) (unknown int)
	// Keyed is nil where there is no keyed memory, as in a replay.
	Keyed func(at model.Time, reports []dta.Report)
	// Refused, if not nil, is called with what a Decoder refuses because of who sent it, or
	// what it is about. The Decoder counts it, too.
	Refused func(from netip.Addr, why translate.Refusal, reports int)
	// Now, if not nil, is the time at which a socket's datagrams arrive: the wall clock
	// of this host may be set while it runs.
	Now func() model.Time
	// Panic, if not nil, is called with a datagram that made its Decoder panic. It must not
	// keep the data.
	Panic func(v any, data []byte)
}

// Guard decides who may send to a socket. ingest/admission has one.
type Guard interface {
	// Datagram decides about a datagram by its source.
	Datagram(now model.Time, from netip.Addr) translate.Refusal
	// Refused counts what Datagram did not admit, or a Decoder.
	Refused(from netip.Addr, why translate.Refusal, reports int)
}

// Adapter is the Config of a source whose reports are converted to Weft's. That
// of DTA, whose reports go to collector memory as they are, is none.
type Adapter interface {
	Config
	NewDecoder(f *Fabric, out Output) (Decoder, error)
	// OpenSocket opens the socket that receives reports, of senders that the guard
	// admits.
	OpenSocket(d Decoder, g Guard) (Listener, error)
	// Sources are who may send, and how much.
	Sources() Limits
}

// Decoder converts reports. One goroutine uses it.
type Decoder interface {
	// Decode converts the payload of UDP, or what follows the IP header, and
	// reports whether it was of use.
	Decode(at model.Time, from netip.AddrPort, data []byte) bool
	Counters() Counters
}

// FrameDecoder is a Decoder that also takes frames of a SPAN port.
type FrameDecoder interface {
	DecodeMirrored(at model.Time, sw model.NodeID, data []byte, ethernet bool)
}

// Tap sees every datagram that a socket received, and whether it was of use. It
// must not keep it.
type Tap func(at model.Time, from, to netip.AddrPort, data []byte, used bool)

// Listener is the socket of a source.
type Listener interface {
	// Run receives until ctx ends, and then what the kernel has queued. tap may
	// be nil.
	Run(ctx context.Context, tap Tap) error
	Addr() netip.AddrPort
	// Counters are those of the decoder and the socket, for any goroutine.
	Counters() Counters
	// Close frees the socket. It may follow Run.
	Close() error
}

// AlertingListener is a Listener that knows what it cannot reach. Alerts answers at once, for
// any goroutine.
type AlertingListener interface {
	Alerts() []string
}

// Limits are the keys of all sources that say who may send.
type Limits struct {
	Allow []netip.Prefix // none: all
	Rate  float64        // datagrams a second of one source address; 0: no limit
}

// Counters account for reports.
type Counters struct {
	Unit    string // what In and Out count
	In, Out uint64
	Losses  []Loss
}

// Loss is a number of reports that were not used.
type Loss struct {
	Reason, About string
	Count         uint64
	Expected      bool // by design
}
