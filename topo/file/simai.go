package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/topo"
)

// parseSimAI parses a topology of SimAI: counts of nodes, GPUs of a server,
// NVSwitches, switches and links, and the GPU's type; the NVSwitches, then the
// switches; then links as in HPCC's files. The nodes that are neither are GPUs,
// server by server: each is a host.
func parseSimAI(name string, data []byte) (*Document, error) {
	r := newWordReader(name, data)
	var n [5]int
	for i, c := range []struct {
		what string
		most int
	}{
		{"number of nodes", maxHPCCNodes},
		{"number of GPUs of a server", maxHPCCNodes},
		{"number of NVSwitches", maxHPCCNodes},
		{"number of switches", maxHPCCNodes},
		{"number of links", topo.MaxLinks},
	} {
		var err error
		if n[i], err = r.number(c.what, c.most); err != nil {
			return nil, err
		}
	}
	nodes, perServer, nvswitches, switches, links := n[0], n[1], n[2], n[3], n[4]
	if _, err := r.word("the type of the GPUs"); err != nil {
		return nil, err
	}
	gpus := nodes - nvswitches - switches
	if gpus < 1 {
		return nil, r.errorf("%d nodes with %d NVSwitches and %d switches, want a GPU at least", nodes, nvswitches, switches)
	}
	if perServer < 1 || gpus%perServer != 0 {
		return nil, r.errorf("%d GPUs of a server, want a divisor of %d, the number of GPUs", perServer, gpus)
	}
	names := make([]string, nodes)
	for i := range nvswitches + switches {
		id, err := r.number(fmt.Sprintf("switch %d of %d:", i+1, nvswitches+switches), nodes-1)
		if err != nil {
			return nil, err
		}
		if names[id] != "" {
			return nil, r.errorf("switch %d is listed twice, want %d different switches", id, nvswitches+switches)
		}
		if names[id] = "s" + strconv.Itoa(id); i < nvswitches {
			names[id] = "nvs" + strconv.Itoa(id)
		}
	}
	for id := range gpus {
		if names[id] != "" {
			return nil, r.errorf("switch %d among the first %d nodes, want GPUs there", id, gpus)
		}
	}
	b := topo.NewBuilder("")
	for id, s := range names {
		spec := hpccNode(id, s != "")
		if s != "" {
			spec.Name = s
		}
		b.AddNode(spec)
	}
	for i := range links {
		if err := readHPCCLink(r, b, nodes, fmt.Sprintf("link %d of %d:", i+1, links)); err != nil {
			return nil, err
		}
	}
	f, err := b.Build()
	if err != nil {
		return nil, r.errorf("%v", err)
	}
	return &Document{Fabric: f, PerServer: perServer}, nil
}

// LooksLikeSimAI reports whether a file begins as SimAI's topologies do: its first
// line with text is made of five numbers and a word.
func LooksLikeSimAI(data []byte) bool {
	numbers, words := firstLine(data)
	return numbers == 5 && words == 6
}

// firstLine returns how many words the first line with text has, and how many of
// them, from the first on, are numbers.
func firstLine(data []byte) (numbers, words int) {
	head := strings.TrimLeft(string(data[:min(len(data), 4096)]), " \t\r\n")
	line, _, _ := strings.Cut(head, "\n")
	fields := strings.Fields(line)
	for numbers < len(fields) && strings.Trim(fields[numbers], "0123456789") == "" {
		numbers++
	}
	return numbers, len(fields)
}
