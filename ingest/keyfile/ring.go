package keyfile

import "sync/atomic"

// Ring is a key file of a running service, which reads it again when keys were
// rotated. It may be used concurrently.
type Ring struct {
	path    string
	current atomic.Pointer[File]
	reads   atomic.Uint64
}

// Open reads a key file.
func Open(path string) (*Ring, error) {
	r := &Ring{path: path}
	if err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// Reload reads the file again. After an error the keys are those of before.
func (r *Ring) Reload() error {
	f, err := Read(r.path)
	if err != nil {
		return err
	}
	r.current.Store(f)
	r.reads.Add(1)
	return nil
}

// Keys returns the present keys of a name, as File.Keys.
func (r *Ring) Keys(name string) []Key { return r.current.Load().Keys(name) }

// File returns the present keys of all names.
func (r *Ring) File() *File { return r.current.Load() }

// Generation changes when the file was read again.
func (r *Ring) Generation() uint64 { return r.reads.Load() }
