package scenario

import (
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weft-telemetry/weft/topo/file"
)

// loader reads a file that a scenario names.
type loader func(path string) ([]byte, error)

// readTopology reads the topology of a scenario: written out as in topology
// files, or named with file. root is the whole document.
func readTopology(root value, data []byte, load loader) (*file.Document, error) {
	list, err := root.entries("the file")
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		if e.key != "topology" {
			continue
		}
		keys, err := e.entries("topology")
		if err != nil {
			return nil, err
		}
		if len(keys) == 1 && keys[0].key == "file" {
			return readTopologyFile(keys[0], load)
		}
		next := 0 // line of the key after the topology
		if i+1 < len(list) {
			next = list[i+1].value.key
		}
		return file.ParseAs(file.YAML, root.File, cut(data, e.value, next))
	}
	return nil, root.errorf("file has no topology, want one")
}

func readTopologyFile(e entry, load loader) (*file.Document, error) {
	name, err := e.text("file")
	if err != nil {
		return nil, err
	}
	path := beside(e.File, name)
	data, err := load(path)
	if err != nil {
		return nil, e.errorf("topology file: %v, want a topology", err)
	}
	return file.Parse(path, data)
}

// beside is where a file that another file names is: relative to that file's
// folder.
func beside(from, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(from), name)
}

// cut returns a file in which only one value is left and everything else is
// blank: its lines keep their numbers, so whoever reads the value complains
// about the right ones. next is the line on which the value's neighbour
// begins, 0 where it is the last.
func cut(data []byte, v value, next int) []byte {
	lines := strings.SplitAfter(string(data), "\n")
	first, last := v.Line, len(lines)
	if next > 0 {
		last = next - 1
	}
	m, flow := v.node.(*ast.MappingNode)
	flow = flow && m.IsFlowStyle && m.Start != nil && m.End != nil
	if flow {
		first, last = m.Start.Position.Line, m.End.Position.Line
	}
	var b strings.Builder
	for i, line := range lines {
		switch no := i + 1; {
		case no < first || no > last:
			b.WriteByte('\n')
		case flow:
			from, to := 1, len(line)+1
			if no == first {
				from = m.Start.Position.Column
			}
			if no == last {
				to = m.End.Position.Column
			}
			blank(&b, line, from, to)
		default:
			b.WriteString(line)
		}
	}
	return []byte(b.String())
}

// blank writes a line with spaces outside the columns from and to, which count
// characters from 1.
func blank(b *strings.Builder, line string, from, to int) {
	column := 0
	for _, r := range line {
		if column++; column >= from && column <= to || r == '\n' {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
}
