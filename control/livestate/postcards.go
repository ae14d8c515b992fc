package livestate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Postcards is part of api.KeyedMemory.
func (m *Memory) Postcards(flow *model.FlowKey, now time.Time) (list []api.PostcardPath, mixed int, err error) {
	at := model.Time(now.Sub(m.epoch))
	err = region.Guard(func() error {
		for lane := range uint8(keyed.Lanes) {
			hops, ok, err := m.readLane(flow, lane, at)
			switch {
			case err != nil:
				return err
			case !ok:
				mixed++
			case len(hops) > 0:
				list = append(list, api.PostcardPath{Hops: hops, Complete: m.isComplete(flow, hops)})
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("livestate: postcards of %s: %w", flow, err)
	}
	slices.SortStableFunc(list, func(a, b api.PostcardPath) int {
		if c := cmp.Compare(b.Time(), a.Time()); c != 0 || a.Complete == b.Complete {
			return c
		}
		if a.Complete {
			return -1
		}
		return 1
	})
	return list, mixed, err
}

// readLane reads the postcards of one packet; none if there are none. It returns false
// if they are of several packets: those of one were not gathered before those of the
// next arrived.
func (m *Memory) readLane(flow *model.FlowKey, lane uint8, now model.Time) (list []api.PostcardHop, ok bool, err error) {
	for range readTries { // a writer may be between two parts
		var words [keyed.Parts][]uint32
		hops := 0
		key := keyed.NewPostcardKey(flow, lane)
		for part := range words {
			key.Part = keyed.Part(part)
			if words[part], err = m.readPart(key); err != nil {
				return nil, false, err
			}
			hops = max(hops, len(words[part]))
		}
		if list, ok = joinParts(&words, hops, now); ok {
			return list, true, nil
		}
	}
	return nil, false, nil
}

// readPart reads one word of every hop.
func (m *Memory) readPart(key keyed.PostcardKey) ([]uint32, error) {
	var b [keyed.Postcard6KeySize]byte
	k := key.AppendTo(b[:0])
	for range readTries {
		a, err := m.cards.Lookup(make([]uint32, 0, slothash.MaxCopies*postcard.MaxHops), k, postcard.Query{Copies: keyed.PostcardCopies, Partial: true})
		if err != nil || a.Outcome != postcard.Conflict {
			return a.Hops, err
		}
	}
	return nil, nil
}

// joinParts makes postcards of words, up to the last hop with all of them. It returns
// false if words are of several packets or switches.
func joinParts(words *[keyed.Parts][]uint32, hops int, now model.Time) (list []api.PostcardHop, ok bool) {
	packet := -1
	for hop := range hops {
		var w [keyed.Parts]uint32
		missing := false
		for part := range words {
			if hop >= len(words[part]) || words[part][hop] == postcard.Blank {
				missing = true
				break
			}
			w[part] = words[part][hop]
		}
		if missing {
			list = append(list, api.PostcardHop{})
			continue
		}
		card, ok := keyed.ParsePostcard(w, now)
		if !ok || packet >= 0 && packet != int(card.Packet) {
			return nil, false
		}
		packet = int(card.Packet)
		list = append(list, api.PostcardHop{Known: true, Postcard: card})
	}
	for len(list) > 0 && !list[len(list)-1].Known {
		list = list[:len(list)-1]
	}
	return list, true
}

// isComplete reports whether all hops from the first to the one at the flow's
// destination are known.
func (m *Memory) isComplete(flow *model.FlowKey, hops []api.PostcardHop) bool {
	if slices.ContainsFunc(hops, func(h api.PostcardHop) bool { return !h.Known }) {
		return false
	}
	last := hops[len(hops)-1].Postcard.Switch
	return slices.ContainsFunc(m.fabric.Owners(flow.Dst), func(id model.NodeID) bool {
		return slices.ContainsFunc(m.fabric.Node(id).Ports, func(p topo.Port) bool { return p.Peer.Node == last })
	})
}
