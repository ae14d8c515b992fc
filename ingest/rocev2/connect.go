// Package rocev2 connects collect/rdma to sockets: a Server serves writes to a
// collector's memory on UDP port 4791 where there is no RDMA NIC, a Client is a
// translator that writes a remote collector's memory. A small exchange over TCP,
// in which both sides prove that they have the translator's key, sets up a
// connection; its fields are RDMA_CM's, so that a setup with a real NIC can
// replace it. The TCP connection lasts as long as the queue pair.
package rocev2

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/roce"
)

// ControlPort is the TCP port of connection setup: the prototype's for Key-Write.
const ControlPort = 1337

// Request is the translator's message: the fields of RDMA_CM's REQ.
type Request struct {
	Addr netip.AddrPort `json:"addr"` // source of its packets
	QPN  roce.QPN       `json:"qpn"`
	PSN  roce.PSN       `json:"psn"` // of its first packet, or of its oldest unacknowledged one
	// Continues is the collector's queue pair of a connection that ended, whose packets
	// the translator still has; 0 begins afresh.
	Continues roce.QPN `json:"continues,omitempty"`
}

// Reply is the collector's message: the fields of REP, and as private data the
// regions, which the prototype sends after it.
type Reply struct {
	Error   string         `json:"error,omitempty"`
	Addr    netip.AddrPort `json:"addr"` // destination of packets
	QPN     roce.QPN       `json:"qpn"`
	MTU     int            `json:"mtu"`
	Regions []RegionAdvert `json:"regions"`
	Heads   []uint64       `json:"heads"` // entries ever written to each list
	// Continued: the connection continues the one of the request, whose packets before
	// First were executed, and no other.
	Continued bool     `json:"continued,omitempty"`
	First     roce.PSN `json:"first,omitempty"`
}

// RegionAdvert describes one region.
type RegionAdvert struct {
	Kind     string          `json:"kind"`
	Geometry json.RawMessage `json:"geometry"`
	Addr     uint64          `json:"addr,string"` // not every JSON reader supports numbers of 64 bits
	Length   uint64          `json:"length"`
	RKey     uint32          `json:"rkey"`
}

// plan reads the geometry of a reply's regions.
func (r Reply) plan() (*translate.Plan, translate.RemoteRegions, error) {
	var p translate.Plan
	var at translate.RemoteRegions
	for _, a := range r.Regions {
		reg := rdma.Region{Addr: a.Addr, Length: a.Length, RKey: a.RKey}
		var err error
		var size int64
		switch a.Kind {
		case keywrite.Kind:
			var cfg keywrite.Config
			var s *keywrite.Scheme
			if err = json.Unmarshal(a.Geometry, &cfg); err == nil {
				s, err = keywrite.NewScheme(cfg)
				size = cfg.Size()
			}
			p.KeyWrites, at.KeyWrites = append(p.KeyWrites, s), append(at.KeyWrites, reg)
		case count.Kind:
			var cfg count.Config
			if err = json.Unmarshal(a.Geometry, &cfg); err == nil {
				p.Counts, err = count.NewScheme(cfg)
				size = cfg.Size()
			}
			at.Counts = reg
		case postcard.Kind:
			var cfg postcard.Config
			if err = json.Unmarshal(a.Geometry, &cfg); err == nil {
				p.Postcards, err = postcard.NewScheme(cfg)
				size = cfg.Size()
			}
			at.Postcards = reg
		case list.Kind:
			var cfg list.Config
			var s *list.Scheme
			if err = json.Unmarshal(a.Geometry, &cfg); err == nil {
				s, err = list.NewScheme(cfg)
				size = cfg.Size()
			}
			p.Lists, at.Lists = append(p.Lists, s), append(at.Lists, reg)
		default:
			err = fmt.Errorf("unknown kind")
		}
		if err == nil && uint64(size) != a.Length {
			err = fmt.Errorf("%d bytes, want %d", a.Length, size)
		}
		if err != nil {
			return nil, at, fmt.Errorf("rocev2: region of kind %q: %w", a.Kind, err)
		}
	}
	return &p, at, p.Check()
}

// advertise describes a region.
func advertise(r *region.Region, at rdma.Region) RegionAdvert {
	h := r.Header()
	return RegionAdvert{Kind: h.Kind, Geometry: h.Geometry, Addr: at.Addr, Length: at.Length, RKey: at.RKey}
}

// countingMemory counts writes by RDMA as the structures' writers do, so that
// readers know the load of the memory. Each copy of an addition counts in full,
// so the sum of additions errs on the safe side.
type countingMemory struct {
	*region.Region
	cell region.WriterCounters
}

func (c countingMemory) Write(off uint64, b []byte) error {
	if err := c.Region.Write(off, b); err != nil {
		return err
	}
	if len(b) > 0 {
		c.cell.CountWrites(1)
	}
	return nil
}

// CompareSwap counts a word that changed as a write.
func (c countingMemory) CompareSwap(off, compare, swap uint64) (uint64, error) {
	was, err := c.Region.CompareSwap(off, compare, swap)
	if err == nil && was == compare {
		c.cell.CountWrites(1)
	}
	return was, err
}

func (c countingMemory) FetchAdd(off, delta uint64) (uint64, error) {
	was, err := c.Region.FetchAdd(off, delta)
	if err == nil {
		c.cell.CountAdded(1, delta)
	}
	return was, err
}
