package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// fatTree is a fabric of k=4 as weft serve reads it, and its configuration.
func fatTree(t *testing.T) (*Config, *fabric) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Topology = filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(cfg.Topology, []byte("generate: {kind: fat-tree, k: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := readFabric(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.machine = 0 // the same on every machine
	return &cfg, f
}

// memoryTable is the table of docs/serve.md.
func memoryTable(shares []MemoryShare) string {
	var b strings.Builder
	b.WriteString("| what | setting | default | beyond |\n|---|---|---|---|\n")
	for _, s := range shares {
		key := s.Key
		if key != "" {
			key = "`" + key + "`"
		}
		size := s.Bytes.String() // as a setting has it
		if s.Bytes%model.MiB != 0 {
			size = model.FormatBytes(s.Bytes)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, key, size, s.Beyond)
	}
	return b.String()
}

// TestMemoryTableIsDocumented compares the table of docs/serve.md with the bounds.
func TestMemoryTableIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	cfg, f := fatTree(t)
	if want := memoryTable(memoryShares(cfg, f)); !strings.Contains(string(doc), want) {
		t.Errorf("docs/serve.md lacks the table of memory; want in section Memory:\n%s", want)
	}
}

// TestMemorySharesNameSettings: what a bound says to lower exists.
func TestMemorySharesNameSettings(t *testing.T) {
	cfg, f := fatTree(t)
	keys := map[string]bool{}
	for _, s := range Settings() {
		keys[s.Key] = true
	}
	for _, s := range memoryShares(cfg, f) {
		if s.Key != "" && !keys[s.Key] {
			t.Errorf("%s: no setting %s", s.Name, s.Key)
		}
		if s.Bytes < 0 {
			t.Errorf("%s: %v, want 0 or more", s.Name, s.Bytes)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	cfg, f := fatTree(t)
	shares := memoryShares(cfg, f)
	limit, err := memoryLimit(0, shares)
	if err != nil || limit > 4*model.GiB {
		t.Errorf("the limit of a fat-tree of k=4 = %v, %v; want at most 4GiB", limit, err)
	}
	if heap := heapLimit(limit, shares); heap <= cfg.Controller.FlowMemory+cfg.Controller.TraceMemory || heap >= limit {
		t.Errorf("of %v the heap has %v; want more than its shares, and less than all", limit, heap)
	}
	_, err = memoryLimit(model.GiB, shares)
	if err == nil || !strings.Contains(err.Error(), "raise it, or lower store.memory (612MiB), ") {
		t.Errorf("memoryLimit(1GiB) = %v; want an error that names the largest settings", err)
	}
	cfg.Memory.Limit = model.GiB
	if _, err := DryRun(*cfg); err == nil || !strings.Contains(err.Error(), "memory.limit") {
		t.Errorf("DryRun with a limit of 1GiB = %v; want the error before anything is opened", err)
	}
	cfg.Controller.FlowMemory, cfg.Controller.TraceMemory, cfg.Controller.DiagnosisMemory = 16*model.MiB, 16*model.MiB, 16*model.MiB
	cfg.Store.Memory, cfg.Store.Hot, cfg.Controller.MaxFlows, cfg.API.MaxConnections = 64*model.MiB, 0, 1000, 128
	cfg.Store.Queue = 10_000
	if limit, err = memoryLimit(model.GiB, memoryShares(cfg, f)); err != nil || limit != model.GiB {
		t.Errorf("memoryLimit(1GiB) with small shares = %v, %v; want 1GiB", limit, err)
	}
}

// TestLimitMember: a member keeps to the limit of a whole service, collects less often, and all is
// as before when it ends; what the environment says wins.
func TestLimitMember(t *testing.T) {
	cfg, _ := fatTree(t)
	cfg.Controller.MaxFlows = 1000 // whatever memory the machine has
	now := func() (limit int64, percent int) {
		percent = debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return debug.SetMemoryLimit(-1), percent
	}
	limit, percent := now()
	for _, gogc := range []string{"", "50"} {
		t.Setenv("GOGC", gogc)
		restore, err := LimitMember(cfg)
		if err != nil {
			t.Fatal(err)
		}
		inside, growth := now()
		if inside >= limit || inside > int64(4*model.GiB) || (growth > percent) != (gogc == "") {
			t.Errorf("GOGC=%s: limit %d, growth %d %%; want less than 4GiB, and more growth than %d %% unless the environment says", gogc, inside, growth, percent)
		}
		restore()
		if l, p := now(); l != limit || p != percent {
			t.Errorf("limit %d and growth %d %% afterwards; want %d and %d %%", l, p, limit, percent)
		}
	}
	cfg.Memory.Limit = model.MiB
	if _, err := LimitMember(cfg); err == nil || !strings.Contains(err.Error(), "memory.limit") {
		t.Errorf("with a limit of 1MiB: %v; want an error about memory.limit", err)
	}
}
