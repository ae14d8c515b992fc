package region

import "fmt"

// Geometry is the configuration of a structure in a region.
type Geometry interface {
	Validate() error
	Size() int64 // of its memory, in bytes
}

// OpenStructure opens the memory of a structure: in the file at path, or anonymous
// if path is empty.
func OpenStructure[G Geometry](path, kind string, g G) (*Region, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return Open(Config{Path: path, Kind: kind, Geometry: g, Size: g.Size()})
}

// GeometryOf reads the geometry of the structure in a region, and checks that it
// is valid and fits the memory.
func GeometryOf[G Geometry](r *Region, kind string) (g G, err error) {
	if err := r.DecodeGeometry(kind, &g); err != nil {
		return g, err
	}
	if err := g.Validate(); err != nil {
		return g, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if g.Size() != r.Size() {
		return g, fmt.Errorf("%w: %d bytes for a %s of %d", ErrDamaged, r.Size(), kind, g.Size())
	}
	return g, nil
}
