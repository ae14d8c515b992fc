package control

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/model/record"
)

// TestSamplersAreAudited: a sampler whose total fell is named, with its port and protocol.
func TestSamplersAreAudited(t *testing.T) {
	var got []record.FlowSlot
	c, _, hops := flowAcrossPods(t, &got)
	at := model.Time(time.Second)
	for _, pool := range []uint64{5000, 9000, 40} {
		at = at.Add(time.Second)
		c.IngestSample(at, &portstat.Sample{Node: hops[1].Node, In: hops[1].In, At: at, Source: portstat.SFlow, Rate: 1000, Has: portstat.HasPool, Pool: pool})
	}
	list := c.wrongSources()
	if len(list) != 1 || list[0].Source != "packets to sample" || list[0].State != "resetting" || list[0].Port == nil || list[0].Port.Port != hops[1].In ||
		list[0].Protocol != "sFlow" || !strings.Contains(list[0].Text, "packets to sample") {
		t.Errorf("wrong sources %+v; want the sampler of port %d, which was reset", list, hops[1].In)
	}
}
