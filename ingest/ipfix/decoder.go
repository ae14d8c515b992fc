package ipfix

import (
	"errors"
	"math"
	"math/bits"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/ipfix"
)

// stats are the counters of a decoder. records = used + other + egress + clock.
type stats struct {
	records, used           uint64
	missing                 uint64
	noTemplate, malformed   uint64
	denied, unknownExporter uint64 // messages
	domains                 uint64 // messages beyond maxDomains
	clock, other, egress    uint64
}

// decoder decodes messages. All of its state is about a few observation domains of
// each switch of the topology, however many exporters send.
type decoder struct {
	out      source.Output
	names    *identity.Table
	switches map[model.NodeID]*source.Switch
	domains  map[domainKey]*domain
	perNode  map[model.NodeID]int // domains
	stats    stats

	reader ipfix.Reader
	record ipfix.Record
	made   portstat.FlowRecord
}

// domainKey is an observation domain, which has templates and numbers of its own.
type domainKey struct {
	node    model.NodeID
	version uint16
	id      uint32
}

type domain struct {
	templates ipfix.Templates
	next      uint32 // sequence number; known says whether it is
	known     bool
	sampling  uint32 // as options say; 0: they have not
}

const (
	// maxDomains is how many domains of a switch are followed: one per line card.
	maxDomains = 32
	// window is the longest gap that counts as loss; numbers further off are those of an
	// exporter that has restarted.
	window = 1 << 20
	// longest is how long before its export a flow may have begun: the longest
	// active timeout in use is half an hour.
	longest = time.Hour
)

func newDecoder(f *source.Fabric, out source.Output) *decoder {
	d := &decoder{
		out: out, names: f.Identity, switches: map[model.NodeID]*source.Switch{},
		domains: map[domainKey]*domain{}, perNode: map[model.NodeID]int{},
	}
	for i := range f.Switches {
		d.switches[f.Switches[i].ID] = &f.Switches[i]
	}
	return d
}

// Decode is part of source.Decoder.
func (d *decoder) Decode(at model.Time, from netip.AddrPort, message []byte) bool {
	if d.reader.Reset(message) != nil {
		d.stats.malformed++
		return false
	}
	src := from.Addr().Unmap()
	sw, known := d.names.NodeByAddr(src)
	switch {
	case !known:
		d.stats.unknownExporter++
		d.refuse(src, translate.UnknownReporter)
		return false
	case !d.switches[sw].SendsFrom(src):
		d.stats.denied++
		d.refuse(src, translate.AddressNotAllowed)
		return false
	}
	one := d.domainOf(sw)
	if one == nil {
		return false
	}
	used := d.stats.used
	records, counted := uint32(0), true
	for {
		more, err := d.reader.Next(&one.templates, &d.record)
		switch {
		case errors.Is(err, ipfix.ErrNoTemplate):
			d.stats.noTemplate++
			counted = false
		case err != nil:
			d.stats.malformed++
			counted = false
		case more:
			records++
			d.addRecord(at, sw, one)
		}
		if !more {
			break
		}
	}
	d.follow(one, records, counted)
	return d.stats.used > used
}

func (d *decoder) refuse(from netip.Addr, why translate.Refusal) {
	if d.out.Refused != nil {
		d.out.Refused(from, why, 0)
	}
}

// domainOf returns the domain of the present message; nil: the switch has too many.
func (d *decoder) domainOf(sw model.NodeID) *domain {
	key := domainKey{sw, d.reader.Header.Version, d.reader.Header.Domain}
	one := d.domains[key]
	if one == nil {
		if d.perNode[sw] >= maxDomains {
			d.stats.domains++
			return nil
		}
		d.perNode[sw]++
		one = &domain{}
		d.domains[key] = one
	}
	return one
}

// follow counts what is missing before the present message, which has a number of records;
// counted: all of them were found.
func (d *decoder) follow(one *domain, records uint32, counted bool) {
	h := &d.reader.Header
	if ahead := h.Seq - one.next; one.known && ahead < window {
		d.stats.missing += uint64(ahead)
	} else if one.known && -ahead <= window {
		return // late, and counted as missing before
	}
	one.next, one.known = h.Seq+1, true
	if h.Version == ipfix.IPFIX {
		one.next, one.known = h.Seq+records, counted
	}
}

// addRecord makes a flow record, or takes what an option says.
func (d *decoder) addRecord(at model.Time, sw model.NodeID, one *domain) {
	r := &d.record
	d.stats.records++
	if r.Options {
		if r.Has.All(ipfix.HasSampling) {
			one.sampling = r.Sampling
		}
		if r.Has.All(ipfix.HasName) && r.In != 0 {
			d.names.LearnIndex(sw, r.In, r.Name)
		}
		d.stats.other++
		return
	}
	switch {
	case !r.Has.All(ipfix.HasFlow|ipfix.HasCounts) || r.Packets == 0:
		d.stats.other++
		return
	case r.Egress:
		d.stats.egress++
		return
	case !r.Has.All(ipfix.HasTimes) || r.Start > longest:
		d.stats.clock++
		return
	}
	m := &d.made
	*m = portstat.FlowRecord{
		Node: sw, From: at.Add(-r.Start), To: at.Add(-r.End), Source: portstat.IPFIX, Flow: r.Flow, Sampling: 1,
	}
	switch {
	case r.Has.All(ipfix.HasSampling):
		m.Sampling = r.Sampling
	case one.sampling > 0:
		m.Sampling = one.sampling
	}
	m.Packets, m.Bytes = scale(r.Packets, m.Sampling), scale(r.Bytes, m.Sampling)
	d.stats.used++
	if d.out.Flow != nil {
		d.out.Flow(m)
	}
}

// scale multiplies without overflow.
func scale(n uint64, by uint32) uint64 {
	high, low := bits.Mul64(n, uint64(by))
	if high > 0 {
		return math.MaxUint64
	}
	return low
}
