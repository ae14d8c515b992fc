package commodity

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"pgregory.net/rapid"
)

// TestAnythingMayArrive: records with any values make no panic, and what is not of the
// fabric is counted and refused.
func TestAnythingMayArrive(t *testing.T) {
	b := newBench(t)
	rapid.Check(t, func(t *rapid.T) {
		before := b.analyzer.Counts()
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			at := model.Port{Node: model.NodeID(rapid.Uint32Range(0, 60).Draw(t, "node")), Port: model.PortID(rapid.Uint16Range(0, 9).Draw(t, "port"))}
			r := portstat.Reading{Port: at, From: model.Time(rapid.Int64().Draw(t, "from")), To: model.Time(rapid.Int64().Draw(t, "to"))}
			r.Has, r.DropReasons = ^portstat.Fields(0), ^portstat.ReasonSet(0)
			r.TxBytes, r.TxPackets, r.RxPackets = rapid.Uint64().Draw(t, "bytes"), rapid.Uint64().Draw(t, "sent"), rapid.Uint64().Draw(t, "received")
			for c := range r.Class {
				r.Class[c].Has = portstat.ClassFields(rapid.Uint32().Draw(t, "fields"))
				r.Class[c].RxPaused = time.Duration(rapid.Int64().Draw(t, "paused"))
				r.Class[c].TxPaused = time.Duration(rapid.Int64().Draw(t, "pausing"))
				r.Class[c].QueueWatermark = model.Bytes(rapid.Int64().Draw(t, "depth"))
			}
			b.analyzer.AddReading(&r)
			b.analyzer.AddSample(&portstat.Sample{
				Node: at.Node, In: at.Port, Out: model.PortID(rapid.Uint16().Draw(t, "out")), Rate: rapid.Uint32().Draw(t, "rate"),
				Bytes: rapid.Uint32().Draw(t, "size"), Has: portstat.SampleFields(rapid.Byte().Draw(t, "has")),
				Priority: model.Priority(rapid.Byte().Draw(t, "priority")),
			})
		}
		for _, v := range b.analyzer.Conclude() {
			if v.Confidence < 0.6 || v.Confidence > 1 || v.Text == "" {
				t.Fatalf("verdict %+v", v)
			}
		}
		after := b.analyzer.Counts()
		if after.Readings+after.Samples+after.UnknownPort+after.BadInterval <= before.Readings+before.Samples+before.UnknownPort+before.BadInterval {
			t.Fatalf("counts %+v after %+v", after, before)
		}
	})
}

// TestFlowsAreBounded: samples of ever new flows take no memory beyond the limit.
func TestFlowsAreBounded(t *testing.T) {
	b := newBench(t)
	b.analyzer.cfg.MaxFlows = 100
	s := portstat.Sample{Node: b.fabric.Switches()[0], In: 1, Out: 2, Rate: 1, Bytes: 100, Flow: b.flow("h0", "h1")}
	for i := range 1000 {
		s.Flow.SrcPort = uint16(i)
		b.analyzer.AddSample(&s)
		s.Has = portstat.HasDrop
		b.analyzer.AddSample(&s)
		s.Has = 0
	}
	n := &b.analyzer.nodes[s.Node]
	if len(n.flows) != 100 || len(n.dropped) != 100 || b.analyzer.Counts().TooManyFlows != 1800 {
		t.Errorf("%d flows, %d dropped, %+v; want 100, 100 and 1800 refused", len(n.flows), len(n.dropped), b.analyzer.Counts())
	}
}

// TestAddReadingAllocatesNothing, once every port has been seen.
func TestAddReadingAllocatesNothing(t *testing.T) {
	b := newBench(t)
	b.conclude()
	r := b.at("tor0:Ethernet8")
	if n := testing.AllocsPerRun(100, func() { b.analyzer.AddReading(r) }); n != 0 {
		t.Errorf("AddReading allocates %v times", n)
	}
}

func BenchmarkRound(bm *testing.B) {
	b := newBench(bm)
	ports := len(b.next)
	for bm.Loop() {
		b.conclude()
	}
	bm.ReportMetric(float64(bm.N*ports)/bm.Elapsed().Seconds(), "readings/s")
}

func TestConfigIsChecked(t *testing.T) {
	good := DefaultConfig(newBench(t).analyzer.cfg.Intent)
	for name, change := range map[string]func(*Config){
		"intent": func(c *Config) { c.Intent = nil }, "paused": func(c *Config) { c.MinPaused = 0 },
		"storm": func(c *Config) { c.StormPaused = 2 }, "confidence": func(c *Config) { c.MinConfidence = 1 },
		"window": func(c *Config) { c.BalanceWindow = 0 }, "flows": func(c *Config) { c.MaxFlows = 0 },
		"senders": func(c *Config) { c.MinSenders = 1 },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: New(%+v) = nil error; want one", name, c)
		}
	}
}
