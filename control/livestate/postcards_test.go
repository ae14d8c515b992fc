package livestate

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// hopCards are the reports of one hop.
func hopCards(flow *model.FlowKey, lane, hop, path uint8, card keyed.Postcard) (list []dta.Report) {
	key := keyed.NewPostcardKey(flow, lane)
	for i, w := range card.Words() {
		key.Part = keyed.Part(i)
		list = append(list, dta.Report{
			Primitive: dta.Postcarding, Redundancy: keyed.PostcardCopies, Hop: hop, Path: path,
			Key: key.AppendTo(nil), Data: binary.BigEndian.AppendUint32(nil, w),
		})
	}
	return list
}

// flowAndPath is a flow between two hosts of a fat-tree, and the switches on its path.
func flowAndPath(t rapid.TB, f *topo.Fabric) (model.FlowKey, []model.NodeID) {
	t.Helper()
	a, b := f.Node(f.Hosts()[0]), f.Node(f.Hosts()[len(f.Hosts())-1])
	k := model.NewFlowKey(netip.AddrPortFrom(a.IPv4.Netip(), 5000), netip.AddrPortFrom(b.IPv4.Netip(), 4791), model.UDP)
	up := f.Node(a.Ports[0].Peer.Node)
	down := f.Node(b.Ports[0].Peer.Node)
	leaf, other := up.Ports[len(up.Ports)-1].Peer.Node, down.Ports[len(down.Ports)-1].Peer.Node
	spine := f.Node(leaf).Ports[len(f.Node(leaf).Ports)-1].Peer.Node
	return k, []model.NodeID{up.ID, leaf, spine, other, down.ID}
}

// TestPathsAreTheNewestOfTheirLane sends postcards of packets, some of them lost or out of
// order, and compares with the packets: a hop is right or missing, and a path that
// misses one is not complete.
func TestPathsAreTheNewestOfTheirLane(t *testing.T) {
	f := fatTree(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, f, Sizes{}, func(p *Plan) { p.Counters.Cells, p.Ports.Slots, p.Cards.Chunks = 64, 64, 1<<14 })
		flow, path := flowAndPath(t, f)
		now := model.Time(0)
		want := map[uint8][]keyed.Postcard{} // by lane; a zero time is missing
		for range rapid.IntRange(0, 8).Draw(t, "packets") {
			now = now.Add(time.Second)
			lane, packet := uint8(rapid.IntRange(0, keyed.Lanes-1).Draw(t, "lane")), uint8(rapid.IntRange(0, 15).Draw(t, "packet"))
			cards, any := make([]keyed.Postcard, len(path)), false
			for _, hop := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order") {
				if rapid.IntRange(0, 5).Draw(t, "lost") == 0 {
					continue
				}
				card := keyed.Postcard{Switch: path[hop], Packet: packet, Latency: time.Duration(rapid.IntRange(0, 127).Draw(t, "latency")), Queue: 64, Time: now}
				length := uint8(0)
				if hop == len(path)-1 {
					length = uint8(len(path))
				}
				cards[hop], any = card, true
				r.put(t, now, hopCards(&flow, lane, uint8(hop), length, card)...)
			}
			r.tr.Tick(now.Add(500 * time.Millisecond)) // all others are lost
			if any {
				want[lane] = cards
			}
		}
		list, mixed, err := r.Postcards(&flow, time.Unix(0, int64(now)))
		if err != nil || mixed != 0 || len(list) != len(want) {
			t.Fatalf("Postcards = %d paths, %d mixed, %v; want %d", len(list), mixed, err, len(want))
		}
		for i := range list {
			if i > 0 && list[i].Time() > list[i-1].Time() {
				t.Fatalf("path %d is newer than the one before", i)
			}
			found := false
			for _, cards := range want {
				found = found || samePath(list[i].Hops, cards, list[i].Complete)
			}
			if !found {
				t.Fatalf("path %+v is of no packet: %+v", list[i], want)
			}
		}
	})
}

// samePath compares what was read with what was sent: hops at the end may be missing.
func samePath(hops []api.PostcardHop, cards []keyed.Postcard, complete bool) bool {
	all := true
	for i, want := range cards {
		all = all && want.Time != 0
		if i >= len(hops) {
			if want.Time != 0 {
				return false
			}
			continue
		}
		got := &hops[i]
		if got.Known != (want.Time != 0) {
			return false
		}
		if got.Known && (got.Switch != want.Switch || got.Latency != want.Latency || got.Queue != want.Queue || got.Postcard.Time>>20 != want.Time>>20) {
			return false
		}
	}
	return complete == all
}

// TestPostcardsOfTwoPacketsAreNotJoined: hops of one packet and of the next under the
// same key are no path.
func TestPostcardsOfTwoPacketsAreNotJoined(t *testing.T) {
	f := fatTree(t, 4)
	r := newRig(t, f, Sizes{}, nil)
	flow, path := flowAndPath(t, f)
	for hop, sw := range path {
		card := keyed.Postcard{Switch: sw, Packet: uint8(hop / 3), Time: 1 << 30}
		r.put(t, 0, hopCards(&flow, 2, uint8(hop), 0, card)...)
	}
	r.tr.Drain(0)
	if list, mixed, err := r.Postcards(&flow, time.Unix(2, 0)); err != nil || len(list) != 0 || mixed != 1 {
		t.Errorf("Postcards = %+v, %d mixed, %v; want one that is mixed", list, mixed, err)
	}
	other := flow.Reverse()
	if list, mixed, err := r.Postcards(&other, time.Unix(2, 0)); err != nil || len(list) != 0 || mixed != 0 {
		t.Errorf("Postcards of another flow = %+v, %d, %v; want none", list, mixed, err)
	}
}
