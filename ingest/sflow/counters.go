package sflow

import (
	"github.com/weft-telemetry/weft/ingest/reading"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/sflow"
)

// The 32-bit counters of a port.
const (
	inUnicast = iota
	inMulticast
	inBroadcast
	inDiscards
	inErrors
	outUnicast
	outMulticast
	outBroadcast
	outDiscards
	outErrors
	fcsErrors
	words
)

// counterSample makes a reading of a counter sample.
func (d *decoder) counterSample(at model.Time, sw model.NodeID, a *agent) {
	s := &d.sample
	if s.Source.Class != 0 || !s.Has.All(sflow.HasPort) {
		d.stats.otherFormat++
		return
	}
	id, known := d.names.PortByIndex(sw, s.Source.Index)
	if s.Has.All(sflow.HasName) {
		id, known = d.names.LearnIndex(sw, s.Source.Index, string(s.Name))
	}
	switch {
	case !known:
		d.stats.unknownPort++
		return
	case id == 0:
		d.stats.otherInterface++
		return
	}
	key := model.Port{Node: sw, Port: id}
	p := d.port(key)
	if p.counted && (p.generation != a.generation || s.Seq-p.seq > window) {
		d.stats.resets++
		d.readings.Forget(key)
		p.counted = false
	}
	when := a.sampledAt(at, d.reader.Header.Uptime)
	totals := d.totals(p, p.counted)
	outcome := d.readings.Add(key, when, &totals, &d.read)
	switch outcome {
	case reading.Late:
		return
	case reading.Reset, reading.Implausible: // what was extended is wrong, too
		d.readings.Forget(key)
		totals = d.totals(p, false)
		d.readings.Add(key, when, &totals, &d.read)
	}
	p.counted, p.seq, p.generation = true, s.Seq, a.generation
	if outcome == reading.Reset || outcome == reading.Implausible {
		return
	}
	d.stats.used++
	if outcome == reading.Made && d.out.Reading != nil {
		d.out.Reading(&d.read)
	}
}

// totals returns the totals of the present sample, and remembers those of 32-bit
// counters: extended by their former ones, or as they are.
func (d *decoder) totals(p *port, extend bool) (c portstat.Counters) {
	i, e := &d.sample.Port, &d.sample.Ethernet
	raw := [words]uint32{
		inUnicast: i.InUnicast, inMulticast: i.InMulticast, inBroadcast: i.InBroadcast, inDiscards: i.InDiscards, inErrors: i.InErrors,
		outUnicast: i.OutUnicast, outMulticast: i.OutMulticast, outBroadcast: i.OutBroadcast, outDiscards: i.OutDiscards, outErrors: i.OutErrors,
		fcsErrors: e.FCSErrors,
	}
	sum := func(list ...int) (total uint64) {
		for _, w := range list {
			if raw[w] != sflow.Unknown {
				total += p.totals[w]
			}
		}
		return total
	}
	for w, v := range raw {
		if extend {
			p.totals[w] = portstat.Extend(p.totals[w], v)
		} else {
			p.totals[w] = uint64(v)
		}
	}
	if i.InOctets != sflow.Unknown64 && i.OutOctets != sflow.Unknown64 {
		c.Has, c.RxBytes, c.TxBytes = c.Has|portstat.HasBytes, i.InOctets, i.OutOctets
	}
	if raw[inUnicast] != sflow.Unknown && raw[outUnicast] != sflow.Unknown {
		c.Has |= portstat.HasPackets
		c.RxPackets, c.TxPackets = sum(inUnicast, inMulticast, inBroadcast), sum(outUnicast, outMulticast, outBroadcast)
	}
	if raw[inDiscards] != sflow.Unknown && raw[outDiscards] != sflow.Unknown {
		c.Has, c.RxDiscards, c.TxDiscards = c.Has|portstat.HasDiscards, sum(inDiscards), sum(outDiscards)
	}
	if raw[inErrors] != sflow.Unknown && raw[outErrors] != sflow.Unknown {
		c.Has, c.RxErrors, c.TxErrors = c.Has|portstat.HasErrors, sum(inErrors), sum(outErrors)
	}
	if d.sample.Has.All(sflow.HasEthernet) && raw[fcsErrors] != sflow.Unknown {
		c.Has, c.FCSErrors = c.Has|portstat.HasFCSErrors, sum(fcsErrors)
	}
	return c
}
