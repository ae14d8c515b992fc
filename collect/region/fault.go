package region

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"
)

// ErrTruncated is wrapped if a file is shorter than its mapping: another process
// truncated it, or the disk below it failed.
var ErrTruncated = errors.New("region: the memory file was truncated")

// mappings are the addresses of mapped files, to name the file of a fault.
var mappings struct {
	sync.RWMutex
	files map[*Region]addressRange
}

type addressRange struct {
	begin, end uintptr
	file       *os.File
}

func addMapping(r *Region) {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(r.mapping)))
	mappings.Lock()
	defer mappings.Unlock()
	if mappings.files == nil {
		mappings.files = map[*Region]addressRange{}
	}
	mappings.files[r] = addressRange{begin, begin + uintptr(len(r.mapping)), r.file}
}

func removeMapping(r *Region) {
	mappings.Lock()
	defer mappings.Unlock()
	delete(mappings.files, r)
}

// Fault returns the error for a panic of an access that the kernel had no page for,
// if it was to a mapped file; nil for other panics.
func Fault(panicked any) error {
	at, ok := panicked.(interface{ Addr() uintptr })
	if !ok {
		return nil
	}
	mappings.RLock()
	defer mappings.RUnlock()
	for _, m := range mappings.files {
		if a := at.Addr(); m.begin <= a && a < m.end {
			size := "its size is unknown"
			if info, err := m.file.Stat(); err == nil {
				size = fmt.Sprintf("it has %d bytes, want %d", info.Size(), m.end-m.begin)
			}
			return fmt.Errorf("%w: %s: %s; remove it, and it is made again", ErrTruncated, m.file.Name(), size)
		}
	}
	return nil
}

// Guard calls do, which accesses regions, and returns an error wrapping ErrTruncated
// if one of their files is too short, where the process would end otherwise. It
// covers the goroutine of do, not those that do starts; do must release locks by
// defer.
func Guard(do func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if p := recover(); p != nil {
			if err = Fault(p); err == nil {
				panic(p)
			}
		}
	}()
	return do()
}
