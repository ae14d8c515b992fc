package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// flowAcrossPods is a controller of a fat-tree, a flow from its first host to its last, and
// the switches of the path. Records of flows are appended to got.
func flowAcrossPods(t *testing.T, got *[]record.FlowSlot) (*Controller, model.FlowKey, []topo.Hop) {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(intentOf(t, f))
	c, err := New(cfg, NoDevices{}, Output{Records: func(b *record.Batch) { *got = append(*got, b.Flows...) }})
	if err != nil {
		t.Fatal(err)
	}
	hosts := f.Hosts()
	key := model.FlowKey{Src: f.Node(hosts[0]).IPv4, Dst: f.Node(hosts[15]).IPv4, SrcPort: 7, DstPort: 4791, Proto: model.UDP}
	path, err := cfg.Intent.At(0).Path(key, hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	return c, key, path[1 : len(path)-1]
}

// TestSampledFlowsAreRecorded: samples of all switches of a path make one record of a
// second with the flow's estimated size and its path; samples of switches that send
// flowsets make none, and neither do drops.
func TestSampledFlowsAreRecorded(t *testing.T) {
	var got []record.FlowSlot
	c, key, hops := flowAcrossPods(t, &got)
	f, hosts := c.fabric, c.fabric.Hosts()
	now := model.Time(time.Second)
	for ; now < model.Time(3*time.Second); now += model.Time(10 * time.Millisecond) {
		for _, sw := range f.Switches() { // all sample something
			c.IngestSample(now, &portstat.Sample{Node: sw, At: now, Rate: 100})
		}
		for _, h := range hops {
			c.IngestSample(now, &portstat.Sample{Node: h.Node, In: h.In, Out: h.Out, At: now, Flow: key, Bytes: 1000, Rate: 100})
			c.IngestSample(now, &portstat.Sample{Node: h.Node, In: h.In, At: now, Flow: key, Bytes: 1000, Rate: 1, Has: portstat.HasDrop})
		}
		if now >= model.Time(2*time.Second) { // flowsets of all switches of the path
			for _, h := range hops {
				c.liveness.markAlive(now, Flowset, h.Node)
			}
		}
		c.Tick(now)
	}
	c.Flush()
	if len(got) == 0 || len(got) > 2 {
		t.Fatalf("%d records: %+v; want one or two", len(got), got)
	}
	packets := uint64(0)
	for _, r := range got {
		packets += r.Packets
		if r.Exact || r.Samples == 0 || r.Bytes != 1000*r.Packets || r.Src != f.Node(hosts[0]).Name || r.Dst != f.Node(hosts[15]).Name || len(r.Path) != len(hops) {
			t.Errorf("record %+v; want an estimate of the flow from %s over %d switches", r, f.Node(hosts[0]).Name, len(hops))
		}
		for i, h := range r.Path {
			if want := f.Node(hops[i].Node).Name; h.Switch != want {
				t.Errorf("hop %d is %s; want %s", i, h.Switch, want)
			}
		}
	}
	if packets < 9_900 || packets > 10_200 { // 100 instants before flowsets arrived
		t.Errorf("%d packets in the records; want 10,000", packets)
	}
}

// TestFlowRecordsAreRecordedOnce: all switches of a path report the same flow; the first one's
// record is stored, with the times and counts it has.
func TestFlowRecordsAreRecordedOnce(t *testing.T) {
	var got []record.FlowSlot
	c, key, hops := flowAcrossPods(t, &got)
	f := c.fabric
	now := model.Time(100 * time.Second)
	for _, sampling := range []uint32{1, 100} {
		for _, h := range hops {
			c.IngestFlowRecord(now, &portstat.FlowRecord{Node: h.Node, From: now.Add(-5 * time.Second), To: now, Flow: key, Packets: 300, Bytes: 4000, Sampling: sampling})
		}
	}
	c.IngestFlowRecord(now, &portstat.FlowRecord{Node: 9999, From: now, To: now, Flow: key, Packets: 1})
	c.IngestFlowRecord(now, &portstat.FlowRecord{Node: hops[0].Node, From: now, To: now - 1, Flow: key, Packets: 1})
	c.Tick(now)
	c.Flush()
	if len(got) != 2 {
		t.Fatalf("%d records; want one for each time", len(got))
	}
	for i, r := range got {
		if r.Packets != 300 || r.Bytes != 4000 || r.Slot != 5*time.Second || r.Exact != (i == 0) || (r.Samples == 0) != (i == 0) || len(r.Path) != 1 || r.Path[0].Switch != f.Node(hops[0].Node).Name {
			t.Errorf("record %+v; want 300 packets in 5 s at %s", r, f.Node(hops[0].Node).Name)
		}
	}
	if st := c.Stats().Counters; st.FlowRecords != 12 || st.Elsewhere != 8 || st.Unknown != 1 || st.Untimely != 1 {
		t.Errorf("%+v; want 12 flow records, 8 elsewhere", st)
	}
}
