package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/hpcc"
)

// workloadFlags select a file of another simulator instead of a scenario.
type workloadFlags struct {
	files map[string]*string // by format
	topo  string
	conf  string // SimAI's network configuration
}

func (f *workloadFlags) register(cmd *cobra.Command) {
	f.files = make(map[string]*string)
	for _, w := range []struct{ format, help string }{
		{"chakra", "run the Chakra execution traces FILE.0.et, FILE.1.et, …, one for each rank"},
		{"goal", "run this GOAL schedule, as text, of LogGOPSim or ATLAHS"},
		{"simai", "run this workload of SimAI, or the files of this directory"},
		{"htsim", "run this connection matrix (.cm) of the htsim simulators"},
	} {
		f.files[w.format] = cmd.Flags().String(w.format, "", w.help)
	}
	cmd.Flags().StringVar(&f.topo, "topo", "",
		"with a workload file: the topology file to run it on, of any format; default: a fat-tree")
	cmd.Flags().StringVar(&f.conf, "conf", "", "with --simai: the network configuration of SimAI; default: Weft's fabric settings")
}

// given returns the format and the file that were given, if any.
func (f *workloadFlags) given() (format, path string, err error) {
	if f.files == nil {
		return "", "", nil // a command without these flags
	}
	for _, name := range scenario.WorkloadFormats() {
		if p := *f.files[name]; p == "" {
			continue
		} else if path != "" {
			return "", "", fmt.Errorf("--%s %s and --%s %s: want one of them", format, path, name, p)
		} else {
			format, path = name, p
		}
	}
	if path == "" && f.topo != "" {
		return "", "", fmt.Errorf("--topo %s is for a workload file, such as --htsim's", f.topo)
	}
	if format != "simai" && f.conf != "" {
		return "", "", fmt.Errorf("--conf %s is for --simai", f.conf)
	}
	return format, path, nil
}

// readSimAI reads the files of SimAI. Those that flags name win over those of a
// directory.
func (f *workloadFlags) readSimAI(path string, o hpcc.Options) (*scenario.Scenario, error) {
	files := scenario.SimAIFiles{Workload: path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = scenario.FindSimAI(path); err != nil {
			return nil, usageError{err}
		}
	}
	files.Topology, files.Network = cmp.Or(f.topo, files.Topology), cmp.Or(f.conf, files.Network)
	s, err := scenario.ReadSimAI(files, o)
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

func (f *workloadFlags) read(format, path string) (*scenario.Scenario, error) {
	s, err := scenario.ReadWorkload(format, path, f.topo)
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}
