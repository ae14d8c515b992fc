package trace

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestRecordsOfEqualPackets: a RoCE packet that is sent again is equal to the byte, and has a
// record of its own; the same trace has the same record, also after a restart.
func TestRecordsOfEqualPackets(t *testing.T) {
	f, err := topo.LeafSpine(2, 2, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	first := Trace{ID: ID{Digest: 1, Key: model.FlowKey{SrcPort: 4791}}, First: 5000, Hops: []Hop{{Time: 5000}, {Time: 6000}}}
	again := first
	again.First, again.Hops = 905_000, []Hop{{Time: 905_000}, {Time: 906_000}}
	other := first
	other.IPID = 2
	ids := map[uint64]string{}
	for name, x := range map[string]*Trace{"first": &first, "again": &again, "other packet": &other} {
		id := x.Record(f).ID
		if known, taken := ids[id]; taken {
			t.Errorf("%q and %q are both record %d", name, known, id)
		}
		ids[id] = name
		if twice := x.RecordID(time.Unix(0, int64(x.First))); twice != id {
			t.Errorf("%q is record %d, then %d", name, id, twice)
		}
	}
}
