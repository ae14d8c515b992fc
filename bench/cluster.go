package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

var clusterSuite = Suite{
	Name:  "cluster",
	About: "CPU of a process for each role on NATS, beside one process that does everything; and how it grows with the number of switches",
	Input: "recorded reports of simulated Clos fabrics of 80, 160 and 320 switches: 400 ms, 144 flows a switch, flowsets, labels, mirrors and states of ports; weft replay to a DuckDB file, " +
		"and weft replay --stream to two processes that analyse, of which one has the NATS server, and one that leads; CPU of weft replay from start to end, of the others from when all are ready",
	run: compareCluster,
}

const (
	clusterGoal   = 0.7 // of the rate of one process, per second of CPU
	linearGoal    = 0.8 // of the rate with a quarter of the switches
	clusterRounds = 3
	clusterParts  = 4
)

// fleetPods are the pods of fabrics of 80, 160 and 320 switches.
var fleetPods = []int{8, 16, 32}

// compareCluster measures both sides of each size in turn.
func compareCluster(ctx context.Context) (results []Result, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-cluster")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var rates []float64 // of the cluster, by size
	var sizes []int
	for _, pods := range fleetPods {
		f, err := recordFleet(ctx, dir, pods)
		if err != nil {
			return nil, err
		}
		var one, many []float64
		var by map[string]time.Duration
		for round := range clusterRounds {
			alone, err := f.alone(ctx, round)
			if err != nil {
				return nil, err
			}
			if by, err = f.cluster(ctx, round); err != nil {
				return nil, err
			}
			if err := f.compareStores(ctx, round); err != nil {
				return nil, err
			}
			one = append(one, f.rate(alone))
			many = append(many, f.rate(sumCPU(by)))
		}
		r := comparePaired(fmt.Sprintf("cluster of processes, %d switches", f.switches), many, "switch-slots per s of CPU", "one process", one, clusterGoal)
		r.Note = cpuByRole(by)
		results = append(results, r)
		rates, sizes = append(rates, r.Value), append(sizes, f.switches)
	}
	last := len(rates) - 1
	growth := higherIsBetter(fmt.Sprintf("cost of a switch, %d switches", sizes[last]), rates[last], "switch-slots per s of CPU",
		fmt.Sprintf("%d switches", sizes[0]), rates[0], linearGoal)
	return append(results, growth), nil
}

// rate is how many slots of a switch are analysed in a second of CPU.
func (f *fleet) rate(cpu time.Duration) float64 {
	return float64(f.switches*fleetSlots) / cpu.Seconds()
}

func sumCPU(by map[string]time.Duration) (all time.Duration) {
	for _, d := range by {
		all += d
	}
	return all
}

func cpuByRole(by map[string]time.Duration) string {
	var list []string
	for _, role := range slices.Sorted(maps.Keys(by)) {
		list = append(list, fmt.Sprintf("%s %.2f s", role, by[role].Seconds()))
	}
	return "of CPU: " + strings.Join(list, ", ")
}

func (f *fleet) storePath(side string, round int) string {
	return filepath.Join(f.dir, fmt.Sprintf("%s%d.duckdb", side, round))
}

// alone replays the recording in one process, and returns its CPU.
func (f *fleet) alone(ctx context.Context, round int) (time.Duration, error) {
	return runWeft(ctx, "replay", f.recording, "--topology", f.topology, "--store", f.storePath("alone", round))
}

// cluster replays the recording through processes, and returns their CPU by role.
func (f *fleet) cluster(ctx context.Context, round int) (by map[string]time.Duration, err error) {
	config := filepath.Join(f.dir, "cluster.yaml")
	text := fmt.Sprintf("topology: %q\nstore: {path: %q}\nstream: {partitions: %d, dir: %q}\n",
		f.topology, f.storePath("cluster", round), clusterParts, filepath.Join(f.dir, fmt.Sprint("stream", round)))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	by = map[string]time.Duration{}
	var members []*weftProcess
	defer func() {
		for _, p := range slices.Backward(members) { // the one with the broker is the last to end
			err = errors.Join(err, p.end())
		}
	}()
	url := "embedded:127.0.0.1:0"
	for _, m := range []struct{ name, role, ready string }{
		{"analyze and broker", "analyze", "msg=ready"}, {"analyze", "analyze", "msg=ready"}, {"lead", "lead", "msg=leading"},
	} {
		p, err := startServe(ctx, m.name, "serve", "--config", config, "--role", m.role, "--stream-url", url)
		if err != nil {
			return nil, err
		}
		members = append(members, p)
		line, err := p.wait(ctx, m.ready)
		if err != nil {
			return nil, err
		}
		if _, at, ok := strings.Cut(line, "stream="); ok {
			url = strings.TrimSpace(at)
		}
	}
	for _, p := range members {
		before, err := p.used()
		if err != nil {
			return nil, err
		}
		by[p.name] = -before
	}
	if by["decode"], err = runWeft(ctx, "replay", f.recording, "--config", config, "--stream", url); err != nil {
		return nil, err
	}
	for _, p := range members {
		after, err := p.used()
		if err != nil {
			return nil, err
		}
		by[p.name] += after
	}
	return by, nil
}

// compareStores returns an error if the two sides of a round did not find the same.
func (f *fleet) compareStores(ctx context.Context, round int) error {
	var counts [2]string
	for i, side := range []string{"alone", "cluster"} {
		var err error
		if counts[i], err = countRecords(ctx, f.storePath(side, round)); err != nil {
			return err
		}
	}
	if counts[0] != counts[1] {
		return fmt.Errorf("%d switches: %s in one process, %s in several; want the same", f.switches, counts[0], counts[1])
	}
	return nil
}

func countRecords(ctx context.Context, path string) (_ string, err error) {
	cfg := embedded.DefaultConfig()
	cfg.Retention = store.Retention{}
	s, err := embedded.Open(path, cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	flows, err := countPages(ctx, s.Flows)
	if err != nil {
		return "", err
	}
	losses, err := countPages(ctx, s.Losses)
	if err != nil {
		return "", err
	}
	incidents, err := countPages(ctx, s.Incidents)
	return fmt.Sprintf("%d flows of slots, %d losses, %d incidents", flows, losses, incidents), err
}

func countPages[T any](ctx context.Context, query func(context.Context, record.Query) (record.Page[T], error)) (n int, err error) {
	for q := (record.Query{}); ; {
		page, err := query(ctx, q)
		if err != nil {
			return n, err
		}
		n += len(page.Items)
		if q.After = page.Next; q.After == "" {
			return n, nil
		}
	}
}
