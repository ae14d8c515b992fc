package serve

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/flowfindings"
	"github.com/weft-telemetry/weft/ingest/nccl"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// MemoryShare is one bound of what a service holds of outside input. The table of
// docs/serve.md has all of them.
type MemoryShare struct {
	Name   string
	Key    string // of the setting that changes it; empty: it is fixed
	Bytes  model.Bytes
	Beyond string // what happens with more
	native bool   // not of the Go heap: mapped, the kernel's or DuckDB's
}

// Sizes that bounds in numbers are counted with. TestTrackedFlowTakesItsSize measures
// that of a flow; TestMemoryLimitHoldsInFloods compares the sum with a process.
const (
	trackedSize    = 2 * model.KiB   // of a flow: its losses, size, load and balance
	connectionSize = 64 * model.KiB  // of a connection: buffers, TLS and its goroutines
	answerSize     = model.MiB       // of an answer of 2,000 records
	streamSize     = model.MiB       // of an event stream: the changes that wait for it
	findingSize    = 40              // of a flow in a finding
	duckOverhead   = 100 * model.MiB // of DuckDB's allocator
)

// memoryShares are all bounds of a service of a fabric.
func memoryShares(c *Config, f *fabric) []MemoryShare {
	a, findings, stream := api.DefaultConfig(), flowfindings.DefaultConfig(), inproc.DefaultConfig()
	dta, states := c.DTA(), coverage.DefaultConfig(f.routes.Fabric())
	list := []MemoryShare{
		{"kernel receive buffers of DTA sockets", "dta.receive_buffer", f.receiveBuffer(c) * model.Bytes(max(dta.Workers, 1)), "the newest datagram is dropped", true},
		{"lists of reports in memory", "controller.flows", model.Bytes(f.memory().Size()), "the oldest entry is overwritten", true},
		{"newest states of ports", "dta.port_memory", model.Bytes(f.keyed.Ports.Size()), "a state of another port is overwritten: it is not found", true},
		{"counters of hosts", "dta.counter_memory", model.Bytes(f.keyed.Counters.Size()), "counters share cells: sums are too high", true},
		{"postcards of flows", "dta.postcard_memory", model.Bytes(f.keyed.Cards.Size()), "older packets' postcards are overwritten: they are not found", true},
		{"stream of INT and ERSPAN reports", "", model.Bytes(stream.Partitions) * stream.BufferSize, "the newest report is shed", false},
		{"queue of counters and packet samples", "", c.counterMemory(), "the newest record is shed", false},
		{"BGP routes of switches", "bmp.listen", c.routeMemory(), "a switch's further routes are refused, and it is not judged", false},
		{"flowsets: assembled, waiting for their slot, decoded", "controller.flow_memory", c.Controller.FlowMemory, "the switch that holds most loses its oldest flowset", false},
		{"records of a slot and of the one before, until they are reduced", "controller.flow_memory", recordMemory(c.Controller.FlowMemory), "those of flowsets that were not decoded are not made", false},
		{"flows that are followed from slot to slot", "controller.max_flows", model.Bytes(f.maxFlows(c)) * trackedSize, "further flows are counted, not followed", false},
		{"traces: open, kept and counted", "controller.trace_memory", c.Controller.TraceMemory, "the trace that was quiet for longest is closed; the oldest of the largest class is evicted", false},
		{"epochs: snapshots, answers and graphs", "controller.diagnosis_memory", c.Controller.DiagnosisMemory, "the switch that holds most loses its oldest snapshot; the oldest detection is evicted", false},
		{"log of flow findings", "", model.Bytes(5 * findings.MaxRows * findings.MaxFlows * findingSize), "the finding that ended first is evicted", false},
		{"labels of ports", "topology", states.Memory(), "the oldest is forgotten", false},
		{"verdicts, drawings, incidents, probes, marks, reporters, sources", "", 64 * model.MiB, "the oldest is forgotten; a new one is refused and counted", false},
		{"records of NCCL", "nccl.ras", c.collectiveMemory(), "the oldest are forgotten", false},
		{"queue of the recording", "record.queue", c.recordingMemory(), "the newest report is not recorded", false},
		{"records that wait for the store", "store.queue", core.QueueMemory(c.Store.Queue), "records are shed by kind", false},
		{"newest records", "store.hot", c.Store.Hot, "older ones are read from the file", false},
		{"numbers of stored flows and paths", "", 48 * model.MiB, "they get new numbers", false},
		{"DuckDB", "store.memory", c.Store.Memory + duckOverhead, "queries spill to disk, or fail", true},
		{"connections of the API", "api.max_connections", model.Bytes(c.API.MaxConnections) * connectionSize, "refused, or the oldest idle one is closed", false},
		{"answers of the API", "", model.Bytes(a.MaxRequests) * answerSize, "503 with Retry-After", false},
		{"event streams of the API", "", model.Bytes(a.MaxClients) * streamSize, "503; a stream that does not keep up is closed", false},
		{"program, stacks and the topology", "", 128*model.MiB + model.Bytes(len(f.routes.Fabric().Nodes()))*64*model.KiB, "", false},
	}
	return list
}

// recordMemory is the memory for records of flows before they are reduced. Decoding,
// which has half of the flow memory, counts more for a flow at a switch than its
// record takes in both slots; slices grow by a quarter.
func recordMemory(flow model.Bytes) model.Bytes { return flow / 2 * 5 / 4 }

// counterMemory is the queue of counters, if a source of them is enabled.
func (c *Config) counterMemory() model.Bytes {
	for _, src := range sources.All() {
		if src.HasCounters && c.Sources[src.Kind].Address() != "" {
			return counterQueueMemory
		}
	}
	return 0
}

// routeMemory is that of routes, if their source is enabled.
func (c *Config) routeMemory() model.Bytes {
	for _, src := range sources.All() {
		if src.HasRoutes && c.Sources[src.Kind].Address() != "" {
			return model.Bytes(routeview.DefaultConfig().MaxRoutes) * routeview.RouteMemory
		}
	}
	return 0
}

// collectiveMemory is that of NCCL's records, if they are followed.
func (c *Config) collectiveMemory() model.Bytes {
	if c.Sources[nccl.Source.Kind].Address() == "" {
		return 0
	}
	return collectives.RecentMemory
}

// recordingMemory is the queue of the recording, with the copy that is being written.
func (c *Config) recordingMemory() model.Bytes {
	if c.Record.Path == "" {
		return 0
	}
	return 2 * c.Record.Queue
}

// heapLimit is what is left of a limit for the Go heap.
func heapLimit(limit model.Bytes, shares []MemoryShare) model.Bytes {
	for i := range shares {
		if shares[i].native {
			limit -= shares[i].Bytes
		}
	}
	return limit
}

// limitHeap makes the garbage collector keep to a limit, or to a lower one that the
// environment has set, until restore is called.
func limitHeap(limit model.Bytes) (restore func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, int64(limit)))
	return func() { debug.SetMemoryLimit(before) }
}

// memberHeap is by how much the heap of a member of a cluster may grow, in percent of what lives
// in it, until it is collected. Little lives in it, so that at 100 it would be collected again
// and again.
const memberHeap = 400

// LimitMember makes the garbage collector of a member of a cluster keep to the limit of one
// process that does everything, until restore is called. GOGC of the environment wins.
func LimitMember(cfg *Config) (restore func(), err error) {
	f, err := readFabric(cfg)
	if err != nil {
		return nil, err
	}
	shares := memoryShares(cfg, f)
	limit, err := memoryLimit(cfg.Memory.Limit, shares)
	if err != nil {
		return nil, err
	}
	unlimit := limitHeap(heapLimit(limit, shares))
	if os.Getenv("GOGC") != "" {
		return unlimit, nil
	}
	percent := debug.SetGCPercent(memberHeap)
	return func() {
		debug.SetGCPercent(percent)
		unlimit()
	}, nil
}

// memoryLimit returns the limit of the process: the configured one, or the sum of all
// shares and what the garbage collector needs between two collections. An error
// names the largest shares whose settings can be lowered.
func memoryLimit(configured model.Bytes, shares []MemoryShare) (model.Bytes, error) {
	sum, heap := model.Bytes(0), model.Bytes(0)
	for i := range shares {
		sum += shares[i].Bytes
		if !shares[i].native {
			heap += shares[i].Bytes
		}
	}
	if configured == 0 {
		return sum + heap/4, nil
	}
	if configured >= sum {
		return configured, nil
	}
	list := slices.DeleteFunc(slices.Clone(shares), func(s MemoryShare) bool { return s.Key == "" || s.Key == "topology" })
	slices.SortStableFunc(list, func(a, b MemoryShare) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) })
	var lower []string
	for _, s := range list[:min(3, len(list))] {
		lower = append(lower, fmt.Sprintf("%s (%v)", s.Key, wholeMiB(s.Bytes)))
	}
	return 0, bad("memory.limit", "%v, but the bounds of this service add up to %v: raise it, or lower %s",
		configured, wholeMiB(sum), strings.Join(lower, ", "))
}

// wholeMiB rounds up, so that the text of a size can be used as a setting.
func wholeMiB(b model.Bytes) model.Bytes { return (b + model.MiB - 1) / model.MiB * model.MiB }
