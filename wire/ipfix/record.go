package ipfix

import (
	"math"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// element is an information element of IANA's registry; NetFlow's field types have the
// same numbers.
type element uint16

const (
	octetDeltaCount          element = 1
	packetDeltaCount         element = 2
	protocolIdentifier       element = 4
	sourceTransportPort      element = 7
	sourceIPv4Address        element = 8
	ingressInterface         element = 10
	destinationTransportPort element = 11
	destinationIPv4Address   element = 12
	flowEndSysUpTime         element = 21
	flowStartSysUpTime       element = 22
	sourceIPv6Address        element = 27
	destinationIPv6Address   element = 28
	samplingInterval         element = 34
	samplerRandomInterval    element = 50
	flowDirection            element = 61
	interfaceName            element = 82
	flowStartSeconds         element = 150
	flowEndSeconds           element = 151
	flowStartMilliseconds    element = 152
	flowEndMilliseconds      element = 153
	flowStartMicroseconds    element = 154
	flowEndMicroseconds      element = 155
	flowStartNanoseconds     element = 156
	flowEndNanoseconds       element = 157
	flowStartDeltaMicros     element = 158
	flowEndDeltaMicros       element = 159
	systemInitTime           element = 160
	samplingPacketInterval   element = 305
	samplingPacketSpace      element = 306
	samplingProbability      element = 311

	enterprise element = 1 << 15 // the bit of a vendor's own element
	unused             = enterprise
)

// Record is what Weft uses of a data record.
type Record struct {
	// Options is set if the record describes the exporter, not a flow.
	Options bool
	Has     Fields

	Flow           model.FlowKey
	Packets, Bytes uint64
	In             uint32 // ifIndex; 0: not known, or the switch itself
	Egress         bool   // counted where packets leave
	// Sampling is one of how many packets was counted; 0: not said.
	Sampling uint32
	// Start and End are how long before the export the flow's first and last packets were.
	Start, End time.Duration
	Name       string // of the interface In

	init           uint64 // systemInitTime
	start, end     uptime
	interval, over uint64 // samplingPacketInterval, samplingPacketSpace
}

// uptime is an instant in milliseconds of an uptime.
type uptime struct {
	at    uint32
	known bool
}

// Fields is a set of what not every record has.
type Fields uint8

// Fields of a record.
const (
	HasCounts   Fields = 1 << iota // packets and bytes
	HasFlow                        // both addresses
	HasTimes                       // start and end
	HasSampling                    // of options, or of the record itself
	HasName                        // of an interface
	hasBytes
)

// All reports whether all of want are present.
func (f Fields) All(want Fields) bool { return f&want == want }

// set takes one value.
func (r *Record) set(h *Header, id element, v []byte) {
	switch id {
	case sourceIPv4Address, destinationIPv4Address, sourceIPv6Address, destinationIPv6Address:
		r.setAddress(id, v)
		return
	case interfaceName:
		r.Name, r.Has = text(v), r.Has|HasName
		return
	case samplingProbability:
		if p := float(v); p > 0 && p <= 1 {
			r.setSampling(uint64(math.Round(min(1/p, math.MaxUint32))))
		}
		return
	}
	n, ok := unsigned(v)
	if !ok {
		return
	}
	switch id {
	case octetDeltaCount:
		r.Bytes, r.Has = n, r.Has|hasBytes
	case packetDeltaCount:
		r.Packets, r.Has = n, r.Has|HasCounts
	case protocolIdentifier:
		r.Flow.Proto = model.Proto(n)
	case sourceTransportPort:
		r.Flow.SrcPort = uint16(n)
	case destinationTransportPort:
		r.Flow.DstPort = uint16(n)
	case ingressInterface:
		r.In = uint32(n)
	case flowDirection:
		r.Egress = n == 1
	case samplingInterval, samplerRandomInterval:
		r.setSampling(n)
	case samplingPacketInterval:
		r.interval = n
	case samplingPacketSpace:
		r.over = n
	default:
		r.setTime(h, id, n)
	}
}

// setAddress takes an end of the flow. An exporter may send both families, one of
// them empty.
func (r *Record) setAddress(id element, v []byte) {
	a, ok := netip.AddrFromSlice(v)
	if !ok || a.IsUnspecified() || (len(v) == 4) != (id == sourceIPv4Address || id == destinationIPv4Address) {
		return
	}
	if id == sourceIPv4Address || id == sourceIPv6Address {
		r.Flow.Src = model.AddrOf(a)
	} else {
		r.Flow.Dst = model.AddrOf(a)
	}
}

func (r *Record) setSampling(n uint64) {
	if n > 0 && n <= math.MaxUint32 {
		r.Sampling, r.Has = uint32(n), r.Has|HasSampling
	}
}

// setTime takes the first or last instant of the flow.
func (r *Record) setTime(h *Header, id element, n uint64) {
	const perSecond = 1 << 32 // NTP's fraction
	export := time.Duration(h.Export) * time.Second
	// Exports are dated in whole seconds: an instant may seem to be after it.
	before := func(at time.Duration) time.Duration { return max(export-at, 0) }
	since1970 := func(n, unit uint64) time.Duration {
		if n > math.MaxInt64/unit {
			return math.MaxInt64
		}
		return time.Duration(n * unit)
	}
	ntp := func(n uint64) time.Duration { // seconds since 1900
		const years = 2208988800
		return time.Duration(n>>32)*time.Second - years*time.Second + time.Duration((n%perSecond)*1e9/perSecond)
	}
	switch id {
	case flowStartSysUpTime:
		r.start = uptime{uint32(n), true}
	case flowEndSysUpTime:
		r.end = uptime{uint32(n), true}
	case systemInitTime:
		r.init = n
	case flowStartSeconds:
		r.Start, r.Has = before(since1970(n, 1e9)), r.Has|HasTimes
	case flowEndSeconds:
		r.End = before(since1970(n, 1e9))
	case flowStartMilliseconds:
		r.Start, r.Has = before(since1970(n, 1e6)), r.Has|HasTimes
	case flowEndMilliseconds:
		r.End = before(since1970(n, 1e6))
	case flowStartMicroseconds, flowStartNanoseconds:
		r.Start, r.Has = before(ntp(n)), r.Has|HasTimes
	case flowEndMicroseconds, flowEndNanoseconds:
		r.End = before(ntp(n))
	case flowStartDeltaMicros:
		r.Start, r.Has = since1970(n, 1e3), r.Has|HasTimes
	case flowEndDeltaMicros:
		r.End = since1970(n, 1e3)
	}
}

// finish combines values that came one by one.
func (r *Record) finish(h *Header) {
	if !r.Has.All(HasCounts | hasBytes) {
		r.Has &^= HasCounts
	}
	r.Has &^= hasBytes
	if r.Flow.Src != (model.Addr{}) && r.Flow.Dst != (model.Addr{}) {
		r.Has |= HasFlow
	}
	if r.interval > 0 {
		r.setSampling((r.interval + r.over) / r.interval)
	}
	if r.start.known && r.end.known {
		now := h.Uptime
		if h.Version == IPFIX {
			now = uint32(uint64(h.Export)*1000 - r.init)
		}
		if h.Version == NetFlow9 || r.init > 0 {
			r.Start, r.End, r.Has = ago(now, r.start.at), ago(now, r.end.at), r.Has|HasTimes
		}
	}
	if r.End > r.Start {
		r.Has &^= HasTimes
	}
}

// unsigned reads a number of 1 to 8 bytes.
func unsigned(v []byte) (n uint64, ok bool) {
	if len(v) == 0 || len(v) > 8 {
		return 0, false
	}
	for _, b := range v {
		n = n<<8 | uint64(b)
	}
	return n, true
}

// float reads a number of 4 or 8 bytes.
func float(v []byte) float64 {
	n, _ := unsigned(v)
	switch len(v) {
	case 4:
		return float64(math.Float32frombits(uint32(n)))
	case 8:
		return math.Float64frombits(n)
	}
	return 0
}

// text reads a string, without the zeroes that fill it up.
func text(v []byte) string {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return string(v)
}
