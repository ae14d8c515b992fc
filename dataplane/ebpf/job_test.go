package ebpf

import (
	"os"
	"testing"
)

// TestMeasureJobs: a slot's counters are in user space, the same by flowset and by hash map.
func TestMeasureJobs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to load eBPF programs")
	}
	const flows, each = 500, 3
	j, err := MeasureJobs(t.Context(), flows, each, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Records) != flows || len(j.Chunks) == 0 {
		t.Errorf("%d records and %d chunks; want %d flows", len(j.Records), len(j.Chunks), flows)
	}
	for key, n := range j.Records {
		if n.Packets != each || n.Bytes != each*uint64(len(costFrame())) || !key.Src.Is4() || key.DstPort != 80 {
			t.Fatalf("%v has %+v; want %d packets of %d bytes", key, n, each, len(costFrame()))
		}
	}
	for _, one := range []Job{j.Flowset, j.HashMap, j.CPUMap} {
		if one.Program <= 0 || one.Export <= 0 {
			t.Errorf("%+v; want times above 0", one)
		}
	}
}
