package congestion

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// Every row of the table makes a control that starts at line rate and has the
// row's name. That of None makes nothing.
func TestTable(t *testing.T) {
	if want := "dcqcn, hpcc, timely, dctcp, swift or none"; Names() != want {
		t.Errorf("Names() = %q; want %q", Names(), want)
	}
	for _, a := range algorithms {
		for _, preset := range a.Presets {
			p, ok := a.Preset(preset.Name)
			if name := TraitsOf(p).Name; !ok || name != a.Name {
				t.Errorf("preset %q of %s is %v and has the name %q", preset.Name, a.Name, ok, name)
			}
			if p == nil {
				continue
			}
			if err := p.Check(); err != nil {
				t.Errorf("preset %q of %s: %v", preset.Name, a.Name, err)
			}
			c := p.New(flow)
			if r := c.OnSent(0, 1000); r != flow.Line || c.Rate() != flow.Line || c.OnTimer(0) != flow.Line {
				t.Errorf("%s starts at %v; want %v", a.Name, r, flow.Line)
			}
		}
	}
	if none, ok := Find("NONE"); !ok || none.Default() != nil {
		t.Errorf("Find(NONE) = %v, %v; want no constants", none, ok)
	}
	if _, ok := Find("no-such-control"); ok {
		t.Error("Find(no-such-control) found something")
	}
	dcqcn, _ := Find("dcqcn")
	if _, ok := dcqcn.Preset("best"); ok || dcqcn.PresetNames() != "paper or hpcc" {
		t.Errorf("presets of dcqcn are %s, and best is %v; want paper or hpcc, and no best", dcqcn.PresetNames(), ok)
	}
}

// Events that an algorithm does not react to change nothing and allocate
// nothing.
func TestEventsAllocateNothing(t *testing.T) {
	for _, a := range algorithms {
		p := a.Default()
		if p == nil {
			continue
		}
		c := p.New(flow)
		var ack Ack
		if n := testing.AllocsPerRun(100, func() {
			ack.Now += us
			ack.Seq, ack.Next = ack.Seq+1000, ack.Next+1000
			c.OnAck(&ack)
			c.OnCNP(ack.Now)
			c.OnSent(ack.Now, 1000)
			c.OnTimer(ack.Now)
		}); n != 0 || c.Rate() > 100*model.Gbps {
			t.Errorf("%s: events allocate %v times at %v; want never, and at most line rate", a.Name, n, c.Rate())
		}
	}
}
