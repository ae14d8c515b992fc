package region

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// mappedLen is the length of a region of h in whole pages.
func (h Header) mappedLen(page int64) (int, error) {
	n := HeaderSize + h.Size
	if h.Size > math.MaxInt64-HeaderSize-page || int64(int(n)) != n {
		return 0, fmt.Errorf("region: size %d exceeds the address space", h.Size)
	}
	return int((n + page - 1) / page * page), nil
}

// mapAnonymous maps memory of this process, on huge pages where the kernel has
// them: random writes are about twice as fast (docs/collector.md).
func mapAnonymous(h Header) (*Region, error) {
	if err := littleEndian(); err != nil {
		return nil, err
	}
	n, err := h.mappedLen(hugePage)
	if err != nil {
		return nil, err
	}
	m, err := syscall.Mmap(-1, 0, n+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("region: map %d bytes: %w", n, err)
	}
	start := -int(uintptr(unsafe.Pointer(&m[0]))) & (hugePage - 1)
	mem := m[start : start+n]
	_ = syscall.Madvise(mem, syscall.MADV_HUGEPAGE) // a hint; HugePageBytes returns the result
	copy(mem, h.encodePage())
	return newRegion(h, m, mem), nil
}

// openFile opens or creates the file of h for writing.
func openFile(path string, want Header) (*Region, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = create(path, want)
	}
	if err != nil {
		return nil, err
	}
	r, err := mapFile(f, syscall.PROT_READ|syscall.PROT_WRITE, &want)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return r, nil
}

func viewFile(path string) (*Region, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := mapFile(f, syscall.PROT_READ, nil)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	r.readOnly = true
	return r, nil
}

// create makes the file under another name and links it when it is complete, so
func create(path string, h Header) (_ *os.File, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	n, err := h.mappedLen(pageSize(f))
	if err != nil {
		return nil, err
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(n)); errors.Is(err, syscall.EOPNOTSUPP) {
		err = f.Truncate(int64(n))
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	copy(m, h.encodePage())
	if err := syscall.Munmap(m); err != nil {
		return nil, err
	}
	// A link, unlike a rename, fails if another process was first.
	if err := os.Link(f.Name(), path); err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// mapFile maps a region's file. With want, it is locked and must hold that.
func mapFile(f *os.File, prot int, want *Header) (*Region, error) {
	if err := littleEndian(); err != nil {
		return nil, err
	}
	if want != nil {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return nil, ErrLocked
		}
	}
	page := make([]byte, HeaderSize)
	if _, err := f.ReadAt(page, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, ErrForeign
		}
		return nil, err
	}
	h, err := parseHeader(page)
	if err != nil {
		return nil, err
	}
	if want != nil {
		if err := h.checkSame(*want); err != nil {
			return nil, err
		}
	}
	n, err := h.mappedLen(pageSize(f))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < int64(n) { // an access past the end would crash the process
		return nil, fmt.Errorf("%w: file of %d bytes, want %d", ErrDamaged, info.Size(), n)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, n, prot, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	_ = syscall.Madvise(m, syscall.MADV_HUGEPAGE) // takes effect on tmpfs that allows it
	r := newRegion(h, m, m)
	r.file = f
	addMapping(r)
	return r, nil
}

// pageSize is the page size of the file system's mappings: larger on hugetlbfs.
func pageSize(f *os.File) int64 {
	const hugetlbfs = 0x958458f6
	var st syscall.Statfs_t
	if syscall.Fstatfs(int(f.Fd()), &st) == nil && uint32(st.Type) == hugetlbfs {
		return int64(st.Bsize)
	}
	return int64(os.Getpagesize())
}

// Sync writes a file's pages to its disk. Without it they survive the process,
// but not the machine.
func (r *Region) Sync() error {
	if r.file == nil || r.readOnly {
		return nil
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", r.file.Name(), err)
	}
	return nil
}

// Close unmaps the memory. No structure on it may be in use any more.
func (r *Region) Close() error {
	r.mem, r.words = nil, nil
	removeMapping(r)
	err := syscall.Munmap(r.mapping)
	r.mapping = nil
	if r.file != nil {
		err = errors.Join(err, r.file.Close())
	}
	return err
}

// littleEndian returns an error on big-endian machines: files and RDMA peers rely
// on the byte order.
func littleEndian() error {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) != 1 {
		return errors.New("region: big-endian machines are not supported")
	}
	return nil
}
