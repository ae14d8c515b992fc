// Package file reads and writes fabrics: Weft's YAML and JSON, HPCC simulator
// topologies; it reads those of SimAI, htsim and containerlab labs, and draws
// fabrics as dot. Fabrics and their
// checks are in topo. docs/topology.md describes the formats for users.
package file

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/topo"
)

// maxSize limits an input file. An expanded fat-tree of k=64 takes 20 MB.
const maxSize = 64 << 20

// Document is the content of a file: a fabric and its routing.
type Document struct {
	Fabric    *topo.Fabric
	Seed      uint64          // of ECMP
	Overrides []topo.Override // static routes
	PerServer int             // hosts that are GPUs of one server, and follow each other; 0: hosts are servers. Write leaves it out

	// Generate is set if the file describes a generated fabric instead of
	// listing nodes and links; Write then writes that description. Set it to nil
	// to write the nodes and links instead.
	Generate *topo.Spec
}

// Routes computes the document's routes.
func (d *Document) Routes() (*topo.Routes, error) {
	return topo.NewRoutes(d.Fabric, topo.RouteConfig{Seed: d.Seed, Overrides: d.Overrides})
}

// Format names a file format.
type Format string

// Formats. Dot is written only, SimAI, Containerlab and HTSim are read only.
const (
	YAML         Format = "yaml"
	JSON         Format = "json"
	HPCC         Format = "hpcc"
	SimAI        Format = "simai"
	HTSim        Format = "htsim"
	Containerlab Format = "containerlab"
	Dot          Format = "dot"
)

// Error is an error in a file. Its text is "file:line: what, want …".
type Error = fileerror.Error

// Read reads a file of any readable format. Every error is an *Error.
func Read(path string) (*Document, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	return Parse(path, data)
}

// Parse parses a file's bytes. The name, used in errors, and the bytes determine
// the format. Every error is an *Error.
func Parse(name string, data []byte) (*Document, error) {
	return ParseAs(detect(name, data), name, data)
}

// ParseAs is Parse where the format is known.
func ParseAs(format Format, name string, data []byte) (*Document, error) {
	if len(data) > maxSize {
		return nil, &Error{File: name, Msg: fmt.Sprintf("more than %d bytes, want less", maxSize)}
	}
	switch format {
	case YAML, JSON:
		return parseYAML(name, data)
	case HPCC:
		return parseHPCC(name, data)
	case SimAI:
		return parseSimAI(name, data)
	case HTSim:
		return parseHTSim(name, data)
	case Containerlab:
		return parseContainerlab(name, data)
	default:
		return nil, &Error{File: name, Msg: fmt.Sprintf("format %s cannot be read, want yaml, json, hpcc, simai, htsim or containerlab",
			format)}
	}
}

// Write writes a document in a format. HPCC's holds nodes and links only: see
// WriteHPCCRoutes for static routes.
func Write(w io.Writer, format Format, d *Document) error {
	var out []byte
	var err error
	switch format {
	case YAML:
		out = appendYAML(nil, d)
	case JSON:
		out = appendJSON(nil, d)
	case HPCC:
		out, err = appendHPCC(nil, d.Fabric)
	case Dot:
		out = appendDot(nil, d.Fabric)
	default:
		err = fmt.Errorf("format %s cannot be written, want yaml, json, hpcc or dot", format)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// FormatByName returns the format of a file to be written, from its name.
func FormatByName(name string) (Format, bool) {
	name = strings.ToLower(filepath.Base(name))
	switch filepath.Ext(name) {
	case ".yaml", ".yml":
		if strings.Contains(name, ".clab.") {
			return Containerlab, true
		}
		return YAML, true
	case ".json":
		return JSON, true
	case ".dot", ".gv":
		return Dot, true
	case ".txt":
		return HPCC, true
	case ".topo":
		return HTSim, true
	default:
		return "", false
	}
}

// detect returns the format of an input. The content decides where it is
// unambiguous: HPCC files have any name, and labs not always .clab in theirs.
func detect(name string, data []byte) Format {
	if format, ok := FormatByName(name); ok && (format == Containerlab || format == JSON || format == Dot) {
		return format
	}
	if looksLikeHPCC(data) {
		return HPCC
	}
	if LooksLikeSimAI(data) {
		return SimAI
	}
	if looksLikeHTSim(data) {
		return HTSim
	}
	if looksLikeContainerlab(data) {
		return Containerlab
	}
	if format, ok := FormatByName(name); ok {
		return format
	}
	return YAML
}

// looksLikeHPCC reports whether the first line with text is made of three
// numbers.
func looksLikeHPCC(data []byte) bool {
	numbers, words := firstLine(data)
	return numbers == 3 && words == 3
}

// looksLikeContainerlab reports whether a line starts with the key topology,
// which Weft's files do not have.
func looksLikeContainerlab(data []byte) bool {
	return strings.HasPrefix(string(data), "topology:") || strings.Contains(string(data), "\ntopology:")
}
