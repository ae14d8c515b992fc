package scenario

import (
	"path/filepath"

	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// loader reads a file that a scenario names.
type loader func(path string) ([]byte, error)

// readTopology reads the topology of a scenario: inline as in topology files,
// or named with file. root is the whole document.
func readTopology(root tree.Value, data []byte, load loader) (*file.Document, error) {
	list, err := root.Entries("the file")
	if err != nil {
		return nil, err
	}
	for i, e := range list {
		if e.Key != "topology" {
			continue
		}
		keys, err := e.Entries("topology")
		if err != nil {
			return nil, err
		}
		if len(keys) == 1 && keys[0].Key == "file" {
			return readTopologyFile(keys[0], load)
		}
		next := 0 // line of the key after the topology
		if i+1 < len(list) {
			next = list[i+1].KeyPosition().Line
		}
		return file.ParseAs(file.YAML, root.File, e.Excerpt(data, next))
	}
	return nil, root.Errorf("file has no topology, want one")
}

func readTopologyFile(e tree.Entry, load loader) (*file.Document, error) {
	name, err := e.Text("file")
	if err != nil {
		return nil, err
	}
	path := relativeTo(e.File, name)
	data, err := load(path)
	if err != nil {
		return nil, e.Errorf("topology file: %v, want a topology", err)
	}
	return file.Parse(path, data)
}

// relativeTo returns the path of a file named in another: relative to that
// file's folder.
func relativeTo(from, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(from), name)
}
