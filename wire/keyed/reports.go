package keyed

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// PostcardReports makes the reports of postcards, in memory that the next postcard
// overwrites.
type PostcardReports struct {
	keys   [Parts][Postcard6KeySize]byte
	values [Parts][4]byte
	list   [Parts]dta.Report
}

// Of returns the reports of a postcard, one for each part. The hash is of the packet, the
// same at all switches; path is the number of its hops, 0 where not known.
func (r *PostcardReports) Of(flow *model.FlowKey, hash uint32, hop, path uint8, card Postcard) []dta.Report {
	card.Packet = uint8(hash / Lanes % 16)
	key := NewPostcardKey(flow, uint8(hash%Lanes))
	for i, word := range card.Words() {
		key.Part = Part(i)
		binary.BigEndian.PutUint32(r.values[i][:], word)
		r.list[i] = dta.Report{
			Primitive: dta.Postcarding, Redundancy: PostcardCopies, Hop: hop, Path: path,
			Key: key.AppendTo(r.keys[i][:0]), Data: r.values[i][:],
		}
	}
	return r.list[:]
}
