package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// forkRate is the rate that the HPCC simulator reached on such files with gcc 12,
// -O2, on one core, counting data and acknowledgements: 0.4 to 0.5 million. It was
// measured on another machine, once; unlike other peers it is not run beside Weft,
// because it does not build with current compilers.
const forkRate = 0.45 // million packet-hops per second

// measureHPCC simulates HPCC's files: its fabric of 320 hosts, and 1000 flows of
// web search at half load.
func measureHPCC(ctx context.Context) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "weft-bench")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	config, err := writeHPCC(dir, 1000)
	if err != nil {
		return 0, err
	}
	c, err := hpcc.Read(config)
	if err != nil {
		return 0, err
	}
	setup, err := hpcc.Build(c, hpcc.Options{Seed: 1})
	if err != nil {
		return 0, err
	}
	n, err := setup.Network()
	if err != nil {
		return 0, err
	}
	n.Run(engine.Time(setup.Flows[0].Start) * engine.Nanosecond)
	start := cpuTime()
	for n.Finished < len(setup.Flows) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if n.Now() > engine.Time(setup.Stop)*engine.Nanosecond {
			return 0, fmt.Errorf("bench: %d of %d flows finished by %v, want all", n.Finished, len(setup.Flows),
				setup.Stop)
		}
		n.Run(n.Now() + 10*engine.Microsecond)
	}
	return float64(n.Counts.Hops) / (cpuTime() - start).Seconds() / 1e6, nil
}

// writeHPCC writes a configuration, the topology that the HPCC simulator calls
// fat.txt, and a flow file.
func writeHPCC(dir string, flows int) (config string, err error) {
	const (
		hosts, perRack   = 320, 16
		racks, pods      = hosts / perRack, 5
		perPod, perPlane = racks / pods, 4 // racks of a pod, and its aggregation switches; core switches of each
		cores            = perPod * perPlane
	)
	var links []string
	link := func(a, b int, rate string) {
		links = append(links, fmt.Sprintf("%d %d %s 1000ns 0.000000", a, b, rate))
	}
	for h := range hosts {
		link(h, hosts+h/perRack, "100Gbps")
	}
	for r := range racks {
		for a := range perPod {
			link(hosts+r, hosts+racks+r/perPod*perPod+a, "400Gbps")
		}
	}
	for a := range racks {
		for c := range perPlane {
			link(hosts+racks+a, hosts+2*racks+a%perPod*perPlane+c, "400Gbps")
		}
	}
	switches := 2*racks + cores
	text := fmt.Sprintf("%d %d %d\n", hosts+switches, switches, len(links))
	for s := range switches {
		text += fmt.Sprintf("%d ", hosts+s)
	}
	text += "\n" + strings.Join(links, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "topology.txt"), []byte(text), 0o600); err != nil {
		return "", err
	}
	if err := writeFlows(dir, hosts, flows); err != nil {
		return "", err
	}
	config = filepath.Join(dir, "config.txt")
	return config, os.WriteFile(config, []byte(`TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
SIMULATOR_STOP_TIME 2.2
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 900
FAST_RECOVERY_TIMES 1
HAS_WIN 1
VAR_WIN 1
KMAX_MAP 2 100000000000 1600 400000000000 6400
KMIN_MAP 2 100000000000 400 400000000000 1600
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 32
`), 0o600)
}

// writeFlows draws the flows as the HPCC simulator's generator does.
func writeFlows(dir string, hosts, flows int) error {
	ends := make([]traffic.Host, hosts)
	for i := range ends {
		ends[i] = traffic.Host{ID: model.NodeID(i), Rate: 100 * model.Gbps}
	}
	g := traffic.DefaultPoisson()
	g.Load, g.Duration = 0.5, 2*time.Millisecond
	list, err := traffic.Generate(1, ends, g)
	if err != nil {
		return err
	}
	if len(list) < flows {
		return fmt.Errorf("bench: %d flows drawn, want %d", len(list), flows)
	}
	var text strings.Builder
	fmt.Fprintln(&text, flows)
	for _, f := range list[:flows] {
		fmt.Fprintf(&text, "%d %d 3 100 %d %.9f\n", f.Src, f.Dst, int64(f.Bytes), 2+float64(f.Start)/1e9)
	}
	return os.WriteFile(filepath.Join(dir, "flow.txt"), []byte(text.String()), 0o600)
}
